// How gradients are cut: segments into units (encoded at once) and buckets (exchanged at once).
// Pure arithmetic over the segments' list; every rank makes the same cut.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compression/compressor.h"
#include "core/device/device.h"
#include "core/parameter.h"

namespace wisp {

struct BucketOptions {
  int64_t bucket_bytes = -1;  // raw gradient bytes at which a bucket closes; 0: every segment
                              // alone; -1: raw / 8 within [64 KiB, 25 MB], on a GPU [1 MiB, 25 MB]
  int64_t encode_bytes = -1;  // raw bytes up to which small segments share a unit; 0: every segment
                              // alone; -1: half a bucket, at most 1 MiB, on a GPU a whole one
};

struct CutUnit {
  int method = 0;             // index into the methods
  std::vector<int> segments;  // ids, ascending
  std::vector<Field> fields;
  int64_t numel = 0;
  int bucket = 0;

  UnitSpec spec() const { return {fields, numel}; }
  /// In traces: its first segment's.
  const std::string& name(std::span<const Segment> of_model) const {
    return of_model[static_cast<size_t>(segments.front())].name;
  }
};

struct Bucket {
  std::vector<int> dense;  // segments that no method takes, ascending
  std::vector<int> units;
  int64_t raw_bytes = 0;
};

struct Cut {
  std::vector<CutUnit> units;
  std::vector<Bucket> buckets;
  int64_t bucket_bytes = 0;  // at which they closed; 0: every segment is one
  uint64_t hash =
      0;  // of names, shapes, methods and borders: ranks compare it, state is keyed by it
};

constexpr int kDense = -1;

/// A method as a cut sees it.
struct CutMethod {
  Scope scope = Scope::layer;
  bool decays = false;  // applies weight decay itself, to all of a field or none of it
};

/// A segment by itself.
Field field_of(const Segment& segment);

/// `method_of[id]` is each segment's method, an index into `methods`, or kDense. Buckets close when
/// their raw gradients reach bucket_bytes, so a compressed run has as many as a dense one. A unit
/// holds neighbouring segments of one method in one bucket; with Scope::bucket it is one field,
/// with Scope::model one field over all buckets, exchanged with the last. `device`, where the
/// gradients are, decides about sizes that `options` leaves open: a unit costs a GPU its launches,
/// however small it is.
Cut make_cut(std::span<const Segment> segments, int64_t element_bytes,
             std::span<const int> method_of, std::span<const CutMethod> methods,
             BucketOptions options, Device device);

}  // namespace wisp
