// A wire of variable length for levels. Each level that is not 0 is sent as omega(distance to the
// one before), a sign bit and omega(magnitude) (elias.h). Source: Alistarh et al. 2017.
//
// A serial stream cannot be decoded in parallel, so each group of elements has its own chunk of
// whole bytes (our addition). The stream of a unit:
//   u32 end[chunks]    end of each chunk, in bytes behind this table
//   the chunks, slice after slice; the last byte of each is filled up with ones
//
// Capacity, proven: let W = |omega(levels)|, and |omega(gap)| < 2 gap. An entry with distance gap
// has at most 2 gap + W <= gap (2 + W) bits, so n elements have n (2 + W). With the L2 norm, a
// level l was rounded from at least l - 1, and the squares of those numbers sum up to at most
// levels². Entries of level 1 have at most 3 gap bits, and |omega(l)| - 1 <= 2 (l - 1)² more. So n
// elements have at most 3 n + 2 levels².
#pragma once

#include "compression/quantize/levels.h"

namespace wisp {

struct EliasWire {
  LevelWire levels;  // format of the levels; group 0: chunks of 512 elements, one scale per field

  int64_t capacity(const UnitSpec& spec) const;
  int64_t scratch_bytes(const UnitSpec& spec) const;

  /// Encodes into a stream. With groups, rounds each group to its own scale and writes it to
  /// `scales`; without, rounds field f to grids[f]. *used becomes `before` + the bytes of the
  /// stream.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, const Grid* grids, float* scales, std::byte* out,
              int64_t before, int64_t* used, std::byte* scratch) const;
  /// Decodes the stream, which begins `before` bytes behind the payload's begin. `scales` has one
  /// entry per group; without groups, one per field.
  void decode(const Stream& stream, const UnitSpec& spec, const float* scales,
              const Payload& payload, int64_t before, float weight, bool add, float* arena) const;

 private:
  int64_t run() const { return levels.group > 0 ? levels.group : 512; }
  int64_t chunks(const UnitSpec& spec) const;
  int64_t chunk_bytes(int64_t numel) const;
};

}  // namespace wisp
