#include "compression/planes.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random.h"

namespace wisp {
namespace {

template <int kWidth>
void check_plane(int64_t numel) {
  using P = Plane<kWidth>;
  std::vector<uint8_t> code(static_cast<size_t>(P::groups(numel) * P::kGroup), 0);
  const Philox random(1, 2, static_cast<uint64_t>(numel));
  for (int64_t i = 0; i < numel; ++i)
    code[static_cast<size_t>(i)] =
        static_cast<uint8_t>(random.bits(static_cast<uint64_t>(i)) & ((1u << kWidth) - 1u));

  const auto bytes = static_cast<size_t>(P::bytes(numel));
  std::vector<std::byte> packed(bytes + 1, std::byte{0xaa});
  const P plane{packed.data(), numel};
  for (int64_t g = 0; g < P::groups(numel); ++g)
    plane.store(g, &code[static_cast<size_t>(g * P::kGroup)]);
  EXPECT_EQ(packed[bytes], std::byte{0xaa});

  // one long number, element 0 lowest
  for (int64_t i = 0; i < numel; ++i) {
    const int64_t bit = i * kWidth;
    const auto byte = std::to_integer<uint32_t>(packed[static_cast<size_t>(bit / 8)]);
    EXPECT_EQ(byte >> (bit % 8) & ((1u << kWidth) - 1u), code[static_cast<size_t>(i)]);
  }
  std::vector<uint8_t> back(code.size(), 0xff);
  for (int64_t g = 0; g < P::groups(numel); ++g)
    plane.load(g, &back[static_cast<size_t>(g * P::kGroup)]);
  back.resize(static_cast<size_t>(numel));
  code.resize(static_cast<size_t>(numel));
  EXPECT_EQ(back, code);
}

TEST(Plane, HoldsEachCodeAtItsBits) {
  for (const int64_t numel : {1, 7, 8, 9, 63, 64, 65, 200}) {
    check_plane<1>(numel);
    check_plane<2>(numel);
    check_plane<4>(numel);
    check_plane<8>(numel);
  }
  EXPECT_EQ(Plane<1>::bytes(9), 2);
  EXPECT_EQ(Plane<2>::bytes(9), 3);
  EXPECT_EQ(Plane<4>::bytes(9), 5);
}

}  // namespace
}  // namespace wisp
