// Levels in lanes of 32-bit words, which the wire sums as unsigned integers. A lane is wide enough
// for the sum over all workers, and a word holds several lanes. A level is added to its word as a
// two's complement number, so a negative level borrows from the lane above. The receiver adds
// `most` to each lane of the sum, so that none is negative, and then separates the lanes. So the
// payload of a sum is the sum of payloads, bit for bit.
//
// A block of 64 words holds 64 · each elements: lane k of word j is element 64 k + j, so both sides
// access memory in order. The last block of a slice has w = ceil(left / each) words, and w takes
// the place of 64. Values; any thread.
#pragma once

#include "compression/quantize/levels.h"

namespace wisp {

struct Lanes {
  int64_t most;  // summands · levels, at most 2^24: the largest magnitude of a sum
  int bits;      // width of a lane: ceil(log2(2 · most + 1))
  int each;      // lanes in a word: floor(32 / bits)

  Lanes(int summands, int levels);
  int64_t words(int64_t numel) const { return (numel + each - 1) / each; }

  /// Writes the words of all slices in order. `nearest` selects Rounding::nearest.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, bool nearest, const Grid* grids, uint32_t* words) const;
  /// Writes weight · sum of levels, in units of the fields' grids, to the slices of `arena`, or
  /// adds it if `add`.
  void decode(const Stream& stream, const UnitSpec& spec, const uint32_t* words, const Grid* grids,
              float weight, bool add, float* arena) const;
};

}  // namespace wisp
