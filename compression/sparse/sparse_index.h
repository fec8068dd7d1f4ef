// Formats for the positions of a sparse list in a payload. k entries of a field of n elements need
// at most
//   runs16   2 (k + E) bytes: the zeros before each entry; E <= (n - k) / 65536 entries of value 0
//            cut gaps beyond 16 bits
//   u32      4 k bytes: the positions
//   gamma    about k (2 log2(n / k) + 1) bits: the gaps in Elias-gamma codes, in chunks
//            (index_gamma.cpp)
//   bitmap   n bits, in 32-bit words
// The shortest format follows from k and n alone, so all ranks choose the same one. Immutable; any
// thread. Sources: Lin et al. 2018, section 4 (16-bit run lengths; the escape is ours); Elias 1975
// (gamma).
#pragma once

#include "compression/method_options.h"
#include "compression/sparse/sparse_list.h"

namespace wisp {
namespace sparse {

/// The number of set bits, computed alike on every device.
WISP_HD inline int count_bits(uint32_t word) {
  word -= word >> 1 & 0x55555555u;
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  return static_cast<int>((((word + (word >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

}  // namespace sparse

/// The part with positions of a received payload of `bytes`. `offset` is a device word with the
/// part's begin.
struct IndexPart {
  const std::byte* data;
  const int64_t* offset;
  int64_t bytes;
  Complaints complaints;
};
/// The part with positions of a payload to write.
struct IndexSpace {
  std::byte* data;
  const int64_t* offset;
};

/// Constants of a format.
struct IndexFacts {
  const char* name;
  int number = 0;  // bytes per entry of a format with one number per entry, which pack.cpp writes
                   // and reads: 2 (the run of zeros before the entry) or 4 (its position); 0:
                   // write() and read() do it
  int64_t escape = 0;      // length from which gaps are cut by escapes; 0: never
  bool counts_all = true;  // whether the payload states the number of entries of every field; if
                           // not, the last one follows from the payload's size
  int64_t alignment = 4;
};

/// One format. Its `room` is the room of the list including the format's escapes.
class IndexFormat : public IndexFacts {
 public:
  explicit IndexFormat(const IndexFacts& facts) : IndexFacts(facts) {}
  virtual ~IndexFormat() = default;

  virtual int64_t most_bytes(const UnitSpec& spec, const Room& room) const {
    return number * room.of(spec);
  }
  virtual int64_t scratch_bytes(const UnitSpec&, const Room&) const { return 0; }

  /// Writes the part. `used`, a device word, gets the bytes of the payload up to the part's end.
  virtual void write(const Stream&, const UnitSpec&, const Room&, const SparseList&,
                     const IndexSpace& /*part*/, int64_t* /*used*/, std::byte* /*scratch*/) const {}
  /// Reads the positions of list.range's entries. Positions that do not fit become kNowhere. A part
  /// of the wrong size causes a complaint.
  virtual void read(const Stream&, const UnitSpec&, const Room&, const SparseList&,
                    const IndexPart& /*part*/, std::byte* /*scratch*/) const {}
};

constexpr uint32_t kNowhere = 0xffffffffu;  // a position beyond every field

const IndexFormat& gamma_format();
const IndexFormat& bitmap_format();
/// The format named by `indices`. The shortest has the least most_bytes, with `value_bits` for the
/// value of each escape.
const IndexFormat& index_format(Indices indices, const UnitSpec& spec, const Room& room,
                                int64_t value_bits);

/// `room` of a list with the format's escapes.
inline Room with_escapes(const IndexFormat& format, Room room) {
  room.escape = format.escape;
  return room;
}

}  // namespace wisp
