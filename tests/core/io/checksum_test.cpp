#include "core/io/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace wisp {
namespace {

TEST(Checksum, MatchesThePublishedVectors) {
  // RFC 3720, appendix B.4.
  const std::string digits = "123456789", zeros(32, '\0'), ones(32, '\xff');
  EXPECT_EQ(crc32c(digits.data(), digits.size()), 0xe3069283u);
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
  EXPECT_EQ(crc32c(ones.data(), ones.size()), 0x62a8ab43u);
  EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

TEST(Checksum, PartsGiveTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 7);
  const uint32_t whole = crc32c(text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32c(text.data(), cut);
    ASSERT_EQ(crc32c(text.data() + cut, text.size() - cut, first), whole) << cut;
  }
}

TEST(Checksum, TextHasEightDigits) { EXPECT_EQ(checksum_text(0xabcu), "00000abc"); }

}  // namespace
}  // namespace wisp
