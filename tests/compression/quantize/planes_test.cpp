#include "compression/quantize/planes.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random.h"

namespace wisp {
namespace {

template <int kWidth, class Team>
void check_plane(const Team& team, int64_t numel) {
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
    plane.store(team, g, &code[static_cast<size_t>(g * P::kGroup)]);
  EXPECT_EQ(packed[bytes], std::byte{0xaa});

  // the codes form one long number, with element 0 lowest
  for (int64_t i = 0; i < numel; ++i) {
    const int64_t bit = i * kWidth;
    const auto byte = std::to_integer<uint32_t>(packed[static_cast<size_t>(bit / 8)]);
    EXPECT_EQ(byte >> (bit % 8) & ((1u << kWidth) - 1u), code[static_cast<size_t>(i)]);
  }
  std::vector<uint8_t> back(code.size(), 0xff);
  for (int64_t g = 0; g < P::groups(numel); ++g)
    plane.load(team, g, &back[static_cast<size_t>(g * P::kGroup)]);
  back.resize(static_cast<size_t>(numel));
  code.resize(static_cast<size_t>(numel));
  EXPECT_EQ(back, code);
}

/// Each plane holds its bits of the codes, the first plane the lowest bits.
template <int... kPlanes, class Team>
void check_planes(const Team& team, int64_t numel) {
  constexpr int kWidth = (kPlanes + ...);
  std::vector<uint8_t> code(static_cast<size_t>(Plane<8>::groups(numel) * Plane<8>::kGroup), 0);
  const Philox random(1, 3, static_cast<uint64_t>(numel));
  for (int64_t i = 0; i < numel; ++i)
    code[static_cast<size_t>(i)] =
        static_cast<uint8_t>(random.bits(static_cast<uint64_t>(i)) & ((1u << kWidth) - 1u));
  const auto bytes = static_cast<size_t>(planes_bytes(numel, kWidth));
  EXPECT_EQ(planes_bytes(numel, kWidth), (Plane<kPlanes>::bytes(numel) + ...));
  std::vector<std::byte> packed(bytes + 1, std::byte{0xaa});
  const PlanesWriter planes{packed.data(), numel, kWidth};
  const PlanesReader<kWidth> read{packed.data(), numel};
  for (int64_t g = 0; g < Plane<8>::groups(numel); ++g)
    planes.store(team, g, &code[static_cast<size_t>(g * Plane<8>::kGroup)]);
  EXPECT_EQ(packed[bytes], std::byte{0xaa});

  int shift = 0;
  const std::byte* at = packed.data();
  const auto check = [&]<int kPlane>(std::integral_constant<int, kPlane>) {
    for (int64_t g = 0; g < Plane<8>::groups(numel); ++g) {
      uint8_t part[64];
      Plane<kPlane, const std::byte>{at, numel}.load(team, g, part);
      for (int64_t j = 0; j < Plane<8>::size_of(g, numel); ++j)
        EXPECT_EQ(part[j], code[static_cast<size_t>(g * 64 + j)] >> shift & ((1 << kPlane) - 1));
    }
    at += Plane<kPlane>::bytes(numel);
    shift += kPlane;
  };
  (check(std::integral_constant<int, kPlanes>()), ...);

  std::vector<uint8_t> back(code.size(), 0xff);
  for (int64_t g = 0; g < Plane<8>::groups(numel); ++g)
    read.load(team, g, &back[static_cast<size_t>(g * Plane<8>::kGroup)]);
  back.resize(static_cast<size_t>(numel));
  code.resize(static_cast<size_t>(numel));
  EXPECT_EQ(back, code);
}

template <class Team>
void check_codes_of_any_width(const Team& team) {
  for (const int64_t numel : {1, 9, 64, 65, 200}) {
    check_planes<1>(team, numel);
    check_planes<2>(team, numel);
    check_planes<2, 1>(team, numel);
    check_planes<4>(team, numel);
    check_planes<4, 1>(team, numel);
    check_planes<4, 2>(team, numel);
    check_planes<4, 2, 1>(team, numel);
    check_planes<8>(team, numel);
  }
}

TEST(Plane, SeveralHoldCodesOfAnyWidth) {
  check_codes_of_any_width(LoneThread());
  check_codes_of_any_width(ShuffledThread(1));
}

template <class Team>
void check_codes_at_their_bits(const Team& team) {
  for (const int64_t numel : {1, 7, 8, 9, 63, 64, 65, 200}) {
    check_plane<1>(team, numel);
    check_plane<2>(team, numel);
    check_plane<4>(team, numel);
    check_plane<8>(team, numel);
  }
}

TEST(Plane, HoldsEachCodeAtItsBits) {
  check_codes_at_their_bits(LoneThread());
  check_codes_at_their_bits(ShuffledThread(1));
  EXPECT_EQ(Plane<1>::bytes(9), 2);
  EXPECT_EQ(Plane<2>::bytes(9), 3);
  EXPECT_EQ(Plane<4>::bytes(9), 5);
}

}  // namespace
}  // namespace wisp
