#include "distributed/exchange/pieces.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

/// The address of every byte of a list of slices, in order.
std::vector<const std::byte*> addresses(std::span<const Bytes> slices) {
  std::vector<const std::byte*> list;
  for (const Bytes& slice : slices) {
    EXPECT_GE(slice.bytes, 0);
    for (int64_t i = 0; i < slice.bytes; ++i) list.push_back(slice.data + i);
  }
  return list;
}

/// Slices of these sizes, with a gap behind each.
std::vector<Bytes> slices_of(std::span<std::byte> memory, const std::vector<int64_t>& sizes) {
  std::vector<Bytes> slices;
  std::byte* at = memory.data();
  for (const int64_t bytes : sizes) {
    slices.push_back({at, bytes});
    at += bytes + 3;
  }
  EXPECT_LE(at, memory.data() + memory.size());
  return slices;
}

/// Bytes of each piece of one slice.
std::vector<int64_t> sizes(int64_t bytes, int64_t piece_bytes, int64_t grain) {
  std::vector<std::byte> memory(static_cast<size_t>(bytes) + 1);
  const Bytes slice{memory.data(), bytes};
  Pieces pieces;
  pieces.cut({&slice, 1}, piece_bytes, grain);
  EXPECT_EQ(pieces.bytes(), bytes);
  std::vector<int64_t> list;
  while (pieces.more()) list.push_back(std::ssize(addresses(pieces.next())));
  return list;
}

TEST(Pieces, HaveTheseSizes) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes(96, 32, 8), (Sizes{32, 32, 32}));
  EXPECT_EQ(sizes(95, 32, 8), (Sizes{40, 55}));       // 11 whole grains: 5 and 6, and 7 bytes
  EXPECT_EQ(sizes(100, 30, 8), (Sizes{32, 32, 36}));  // 12 whole grains, and 4 bytes
  EXPECT_EQ(sizes(63, 32, 8), (Sizes{63}));           // less than two pieces
  EXPECT_EQ(sizes(40, 8, 16), (Sizes{16, 24}));       // fewer whole grains than pieces
  EXPECT_EQ(sizes(15, 8, 16), (Sizes{15}));           // no whole grain
  EXPECT_EQ(sizes(100, 0, 8), (Sizes{100}));          // no limit
  EXPECT_EQ(sizes(0, 8, 4), (Sizes{0}));              // a collective without data is one, too
}

/// All pieces together have each byte once, in order, whatever slices the borders cut.
TEST(Pieces, CoverEachByteOnce) {
  std::vector<std::byte> memory(1000);
  Pieces pieces;  // one object for all, as in a step
  for (const std::vector<int64_t>& of_slices : std::vector<std::vector<int64_t>>{
           {240}, {4, 236}, {120, 0, 120}, {0, 8, 8, 200, 24, 0}, {100, 100, 100, 100, 44}, {}}) {
    const std::vector<Bytes> slices = slices_of(memory, of_slices);
    const std::vector<const std::byte*> expected = addresses(slices);
    for (const int64_t piece_bytes : {0, 1, 20, 64, 239, 240, 1000}) {
      for (const int64_t grain : {1, 4, 12, 32, 500}) {
        pieces.cut(slices, piece_bytes, grain);
        std::vector<const std::byte*> covered;
        while (pieces.more()) {
          const std::vector<const std::byte*> piece = addresses(pieces.next());
          EXPECT_EQ(covered.size() % static_cast<size_t>(grain), 0u) << "a border in a grain";
          EXPECT_EQ(piece.empty(), expected.empty());
          covered.insert(covered.end(), piece.begin(), piece.end());
        }
        EXPECT_EQ(covered, expected) << "pieces of " << piece_bytes << ", grains of " << grain;
      }
    }
  }
}

/// Two pieces or more have from `piece_bytes` to half as much again, up to a grain.
TEST(Pieces, AreAboutAsLargeAsAsked) {
  constexpr int64_t kPiece = 100, kGrain = 12;
  for (int64_t bytes = 2 * kPiece; bytes < 2000; bytes += 7) {
    const std::vector<int64_t> list = sizes(bytes, kPiece, kGrain);
    EXPECT_EQ(std::ssize(list), bytes / kPiece);
    for (const int64_t piece : list) {
      EXPECT_GT(piece, kPiece - kGrain) << bytes;
      EXPECT_LT(piece, kPiece * 3 / 2 + kGrain) << bytes;
    }
  }
}

}  // namespace
}  // namespace wisp
