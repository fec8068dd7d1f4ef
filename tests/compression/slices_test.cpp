#include "compression/slices.h"

#include <gtest/gtest.h>

#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// The arena index of each element of the run.
std::vector<int64_t> run_of(const Field& field, int64_t start, int64_t length) {
  std::vector<int64_t> indices(static_cast<size_t>(length), -1);
  each_piece(field, start, length, [&](int64_t offset, int64_t at, int64_t numel) {
    for (int64_t i = 0; i < numel; ++i) indices.at(static_cast<size_t>(at + i)) = offset + i;
  });
  return indices;
}

using Places = std::vector<int64_t>;

TEST(CyclicRun, WalksThroughSlicesAndRoundTheEnd) {
  const Field field = joined_field({3, 2, 4});  // slices at 0, 6 and 11
  EXPECT_EQ(run_of(field, 0, 9), (Places{0, 1, 2, 6, 7, 11, 12, 13, 14}));
  EXPECT_EQ(run_of(field, 2, 4), (Places{2, 6, 7, 11}));
  EXPECT_EQ(run_of(field, 7, 5), (Places{13, 14, 0, 1, 2}));
  EXPECT_EQ(run_of(field, 1, 9), (Places{1, 2, 6, 7, 11, 12, 13, 14, 0}));
  EXPECT_EQ(run_of(field, 8, 0), Places{});
}

TEST(CyclicRun, CountsBeyond32Bits) {
  constexpr int64_t kFar = int64_t{1} << 33;
  const Field field{.slices = {{5, kFar}, {kFar + 9, 4}}, .numel = kFar + 4};
  std::vector<std::array<int64_t, 3>> pieces;
  each_piece(field, kFar - 1, 8, [&](int64_t offset, int64_t at, int64_t numel) {
    pieces.push_back({offset, at, numel});
  });
  EXPECT_EQ(pieces,
            (std::vector<std::array<int64_t, 3>>{{kFar + 4, 0, 1}, {5, 5, 3}, {kFar + 9, 1, 4}}));
}

}  // namespace
}  // namespace wisp
