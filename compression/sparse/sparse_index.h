// How the positions of a sparse list lie in a payload: a file for each format. k entries of a field
// of n elements need at most
//   runs16   2 (k + E) bytes: the zeros before each entry; E <= (n - k) / 65536 entries of value 0
//            cut gaps beyond 16 bits
//   u32      4 k bytes: the positions
//   gamma    the gaps in Elias-gamma codes, in chunks (index_gamma.cpp): about
//            k (2 log2(n / k) + 1) bits
//   bitmap   n bits, in 32-bit words
// Pure arithmetic of k and n says which of them is shortest, so all ranks know.
// Sources: Lin et al. 2018, section 4 (16-bit run lengths; the escape is ours); Elias 1975 (gamma).
#pragma once

#include "compression/sparse/sparse_list.h"

namespace wisp {

enum class Indices { shortest, runs16, u32, gamma, bitmap };

/// Binds compression.indices.
Indices bind_indices(Config& config);

/// The part of a payload of `bytes` that holds positions; `offset`, a device word, is where it
/// begins.
struct IndexPart {
  const std::byte* data;
  const int64_t* offset;
  int64_t bytes;
  Complaints complaints;
};
/// The same while it is written.
struct IndexSpace {
  std::byte* data;
  const int64_t* offset;
};

/// One format. `room` is the list's, with the format's escapes.
class IndexFormat {
 public:
  virtual ~IndexFormat() = default;

  virtual const char* name() const = 0;
  /// Bytes of an entry's index where that is a number of its own, which pack.cpp writes and reads:
  /// 2, the run of zeros before it, or 4, its position. 0: write and read do.
  virtual int number() const { return 0; }
  /// Gaps of this length and more are cut; 0: never.
  virtual int64_t escape() const { return 0; }
  /// The payload's size does not tell how many entries there are.
  virtual bool counts_all() const { return true; }
  virtual int64_t alignment() const { return 4; }
  virtual int64_t most_bytes(const UnitSpec& spec, const Room& room) const = 0;
  /// Bytes that a list of `entries` needs at least.
  virtual int64_t least_bytes(int64_t /*entries*/) const { return 0; }
  virtual int64_t scratch_bytes(const UnitSpec&, const Room&) const { return 0; }

  /// Writes the part; `used`, a device word, gets the bytes of the payload up to its end.
  virtual void write(const Stream& /*stream*/, const UnitSpec& /*spec*/, const Room& /*room*/,
                     const SparseList& /*list*/, const IndexSpace& /*part*/, int64_t* /*used*/,
                     std::byte* /*scratch*/) const {}
  /// Reads the positions of list.range's entries. What does not fit becomes kNowhere; a part of
  /// another size than theirs is complained of.
  virtual void read(const Stream& /*stream*/, const UnitSpec& /*spec*/, const Room& /*room*/,
                    const SparseList& /*list*/, const IndexPart& /*part*/,
                    std::byte* /*scratch*/) const {}
};

constexpr uint32_t kNowhere = 0xffffffffu;  // a position beyond every field

const IndexFormat& runs16_format();
const IndexFormat& u32_format();
const IndexFormat& gamma_format();
const IndexFormat& bitmap_format();
/// What `indices` says; the shortest is that of the least most_bytes, escapes' values of
/// `value_bits` included.
const IndexFormat& index_format(Indices indices, const UnitSpec& spec, const Room& room,
                                int64_t value_bits);

/// `room` of a list that gets the format's escapes.
inline Room with_escapes(const IndexFormat& format, Room room) {
  room.escape = format.escape();
  return room;
}

}  // namespace wisp
