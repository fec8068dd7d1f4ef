// Levels on a wire of variable length: what is not 0 travels as omega(distance to the one before),
// a sign bit, omega(magnitude) (elias.h). Source: Alistarh et al. 2017.
//
// A serial stream cannot be decoded in parallel, so each group of elements has a chunk of whole
// bytes of its own (ours). The stream of a unit:
//   u32 end[chunks]    where the chunks end, in bytes behind this table
//   the chunks, slice after slice; the last byte of each is filled up with ones
//
// Capacity, proven: with W = |omega(levels)| and |omega(gap)| < 2 gap, an entry of distance gap has
// at most 2 gap + W <= gap (2 + W) bits: n (2 + W) for n elements. With the L2 norm, a level l has
// been rounded from at least l - 1, and the squares of those sum up to levels² at most: entries of
// level 1 have at most 3 gap bits, and |omega(l)| - 1 <= 2 (l - 1)² more: 3 n + 2 levels².
#pragma once

#include "compression/quantize/levels.h"

namespace wisp {

struct EliasWire {
  LevelWire levels;  // what a level is; group 0: chunks of 512 elements, one scale for the field

  int64_t capacity(const UnitSpec& spec) const;
  int64_t scratch_bytes(const UnitSpec& spec) const;

  /// Writes each group's scale to `scales`; without groups, rounds field f to grids[f]. *used gets
  /// `before` and the bytes of the stream.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, const Grid* grids, float* scales, std::byte* out,
              int64_t before, int64_t* used, std::byte* scratch) const;
  /// The stream lies `before` bytes behind the payload's begin. `scales`: of each group, or each
  /// field.
  void decode(const Stream& stream, const UnitSpec& spec, const float* scales,
              const Payload& payload, int64_t before, float weight, bool add, float* arena) const;

 private:
  int64_t run() const { return levels.group > 0 ? levels.group : 512; }
  int64_t chunks(const UnitSpec& spec) const;
  int64_t chunk_bytes(int64_t numel) const;
};

}  // namespace wisp
