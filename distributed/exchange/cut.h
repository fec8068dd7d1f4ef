// The cut of a model's gradients: segments into units (encoded at once) and buckets (exchanged at
// once). Pure arithmetic on the list of segments; every rank makes the same cut. Any thread.
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
  int64_t bucket_bytes = -1;  // raw gradient bytes at which a bucket closes; 0: one segment per
                              // bucket; -1: raw / 8 within [64 KiB, 25 MB], on a GPU [1 MiB, 25 MB]
  int64_t encode_bytes = -1;  // raw bytes up to which small segments share a unit; 0: one segment
                              // per unit; -1: half a bucket, at most 1 MiB, on a GPU a whole one
};

/// The most elements of a unit: codes, positions and random numbers count them in 32 bits.
constexpr int64_t kMostUnitElements = UINT32_MAX;

/// Segments of one method that are encoded together.
struct CutUnit {
  int method = 0;             // index into the methods
  std::vector<int> segments;  // ids, ascending
  std::vector<Field> fields;
  int64_t numel = 0;
  int bucket = 0;

  UnitSpec spec() const { return {fields, numel}; }
  /// Name in traces: its first segment's.
  const std::string& name(std::span<const Segment> of_model) const {
    return of_model[static_cast<size_t>(segments.front())].name;
  }
};

/// Units and dense segments that are exchanged together.
struct Bucket {
  std::vector<int> dense;  // segments without a method, ascending
  std::vector<int> units;
  int64_t raw_bytes = 0;
};

/// The gradients of a model in units and buckets; see the head of this file.
struct Cut {
  std::vector<CutUnit> units;
  std::vector<Bucket> buckets;
  int64_t bucket_bytes = 0;  // raw bytes at which buckets closed; 0: one segment per bucket
  uint64_t hash = 0;  // of names, shapes, methods, borders; ranks compare it, and state keeps it
};

constexpr int kDense = -1;

/// The part of a method that a cut depends on.
struct CutMethod {
  Scope scope = Scope::layer;
  bool decays = false;  // applies weight decay itself, to all of a field or to none
};

/// A field of one segment.
Field field_of(const Segment& segment);

/// `method_of[id]` is each segment's index into `methods`, or kDense. A bucket closes when its raw
/// gradients reach bucket_bytes, so a compressed run has as many buckets as a dense one. A unit
/// holds segments of one method in one bucket, in arena order; other segments may lie between them.
/// With Scope::bucket a unit is one field.
/// With Scope::model it is one field over all buckets, exchanged with the last. `device`, the
/// gradients' device, determines sizes that `options` leaves open: on a GPU each unit costs
/// launches, however small it is. Throws Error for a unit of more than kMostUnitElements.
Cut make_cut(std::span<const Segment> segments, int64_t element_bytes,
             std::span<const int> method_of, std::span<const CutMethod> methods,
             BucketOptions options, Device device);

}  // namespace wisp
