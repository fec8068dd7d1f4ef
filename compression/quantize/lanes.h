// Levels that are summed on the wire: several in each 32-bit word, in lanes wide enough for the sum
// over all workers, added as unsigned integers. A level is added to its word as a two's complement
// number, so that a negative one borrows from the lane above; the receiver adds `most` to each lane
// of the sum, after which none is negative, and takes the lanes apart. So payloads add up as their
// levels do: the payload of a sum is the sum of payloads, bit for bit.
//
// 64 words hold 64 · each elements: lane k of word j is element 64 k + j, so that both sides go
// through memory in order. The last block of a slice has w = ceil(left / each) words and w in the
// place of 64.
#pragma once

#include "compression/quantize/levels.h"

namespace wisp {

struct Lanes {
  int64_t most;  // workers · levels, at most 2^24: the largest magnitude of a sum
  int bits;      // of a lane: ceil(log2(2 · most + 1))
  int each;      // lanes in a word: floor(32 / bits)

  Lanes(int workers, int levels);
  int64_t words(int64_t numel) const { return (numel + each - 1) / each; }

  /// Words lie slice behind slice. `nearest` is of Rounding.
  void encode(const Stream& stream, const Source& source, const UnitSpec& spec,
              const StepInfo& info, bool nearest, const Grid* grids, uint32_t* words) const;
  /// Writes weight · sum of levels, in units of the fields' grids, to the slices of `arena`, or
  /// adds it.
  void decode(const Stream& stream, const UnitSpec& spec, const uint32_t* words, const Grid* grids,
              float weight, bool add, float* arena) const;
};

}  // namespace wisp
