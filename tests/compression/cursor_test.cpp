#include "compression/cursor.h"

#include <gtest/gtest.h>

#include <array>

namespace wisp {
namespace {

struct Parts {
  float* values;
  std::byte* work;
  int64_t* count;
  std::byte* last;

  Parts(Cursor& cursor, int64_t numel)
      : values(cursor.take<float>(numel)),
        work(cursor.take<std::byte>(9)),
        count(cursor.take<int64_t>(1)),
        last(cursor.take_last([&] { return 2 * numel; })) {}
};

TEST(Cursor, TakesPartsOneBehindTheOther) {
  std::array<int64_t, 6> memory{};
  auto* begin = reinterpret_cast<std::byte*>(memory.data());
  const auto parts = lay_out<Parts>(begin, 3);
  EXPECT_EQ(reinterpret_cast<std::byte*>(parts.values), begin);
  EXPECT_EQ(parts.work, begin + 16);
  EXPECT_EQ(reinterpret_cast<std::byte*>(parts.count), begin + 32);
  EXPECT_EQ(parts.last, begin + 40);
}

TEST(Cursor, MeasuresALayoutWithoutMemory) {
  EXPECT_EQ(layout_bytes<Parts>(3), 48);
  EXPECT_EQ(layout_bytes<Parts>(0), 24);
  EXPECT_EQ(lay_out<Parts>(nullptr, 3).count, nullptr);
}

}  // namespace
}  // namespace wisp
