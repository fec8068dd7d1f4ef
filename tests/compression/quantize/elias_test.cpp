#include "compression/quantize/elias.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace wisp {
namespace {

std::string text_of(const OmegaCode& code) {
  std::string text;
  for (int bit = code.length - 1; bit >= 0; --bit) text += code.bits >> bit & 1 ? '1' : '0';
  return text;
}

TEST(Elias, CodesAreThePapers) {
  for (const auto& [n, code] :
       std::vector<std::pair<uint32_t, std::string>>{{1, "0"},
                                                     {2, "100"},
                                                     {3, "110"},
                                                     {4, "101000"},
                                                     {5, "101010"},
                                                     {6, "101100"},
                                                     {7, "101110"},
                                                     {8, "1110000"},
                                                     {9, "1110010"},
                                                     {15, "1111110"},
                                                     {16, "10100100000"},
                                                     {17, "10100100010"},
                                                     {100, "1011011001000"},
                                                     {1000, "11100111111010000"},
                                                     {1000000, "1010010011111101000010010000000"}})
    EXPECT_EQ(text_of(omega_code(n)), code) << n;
}

TEST(Elias, ReadsWhatItWrites) {
  constexpr uint32_t kLast = 1 << 20;
  std::vector<std::byte> memory(8 << 20);
  BitWriter writer(memory.data());
  int64_t bits = 0;
  for (uint32_t n = 1; n <= kLast; ++n) {
    const OmegaCode code = omega_code(n);
    ASSERT_LT(code.length, 2.0 * n);  // capacities rely on this
    writer.put(code.bits, code.length);
    bits += code.length;
  }
  writer.finish();
  EXPECT_EQ(writer.end() - memory.data(), (bits + 7) / 8);
  BitReader reader(memory.data(), writer.end());
  for (uint32_t n = 1; n <= kLast; ++n) {
    ASSERT_FALSE(reader.at_padding());
    ASSERT_EQ(reader.omega(), n);
  }
  EXPECT_TRUE(reader.at_padding());
  EXPECT_EQ(reader.left(), 7 - (bits + 7) % 8);
}

TEST(Elias, FillsTheLastByteWithWhatIsNoCode) {
  for (int written = 0; written < 8; ++written) {
    std::byte byte{0x5a};
    BitWriter writer(&byte);
    for (int i = 0; i < written; ++i) writer.put(0, 1);
    writer.finish();
    EXPECT_EQ(writer.end() - &byte, written > 0 ? 1 : 0);
    BitReader reader(&byte, writer.end());
    for (int i = 0; i < written; ++i) {
      EXPECT_FALSE(reader.at_padding());
      EXPECT_EQ(reader.omega(), 1u);
    }
    EXPECT_TRUE(reader.at_padding());
  }
}

TEST(Elias, EndsAtTheEndOfTheBytes) {
  const std::vector<std::byte> ones(4, std::byte{0xff});
  BitReader reader(ones.data(), ones.data() + 4);
  EXPECT_EQ(reader.omega(), 0u);  // groups 1, 3, 15, 65535: beyond 2^24
  BitReader empty(ones.data(), ones.data());
  EXPECT_EQ(empty.omega(), 1u);
  EXPECT_LT(empty.left(), 0);
  BitReader cut(ones.data(), ones.data() + 1);
  EXPECT_FALSE(cut.at_padding());
  cut.omega();
  EXPECT_LT(cut.left(), 0);
}

}  // namespace
}  // namespace wisp
