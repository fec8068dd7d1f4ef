#include "apps/run/bottleneck.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(Bottleneck, IsComputeWhereTheExchangeHides) {
  const Bottleneck found = find_bottleneck(
      {.compute_ms = 90.0, .wait_ms = 5.0, .encode_ms = 3.0, .wire_ms = 20.0, .decode_ms = 2.0});
  EXPECT_EQ(found.part, Part::compute);
  EXPECT_DOUBLE_EQ(found.share, 70.0 / 95.0);  // 25 ms of exchange remain
}

TEST(Bottleneck, IsTheWireWhereItIsWaitedFor) {
  const StepTimes slow{
      .compute_ms = 100.0, .wait_ms = 300.0, .encode_ms = 1.0, .wire_ms = 400.0, .decode_ms = 1.0};
  const Bottleneck found = find_bottleneck(slow);
  EXPECT_EQ(found.part, Part::wire);
  EXPECT_DOUBLE_EQ(found.share, 300.0 / 400.0);
  EXPECT_DOUBLE_EQ(found.factor, 4.0);  // 100 of 400 ms are hidden
  EXPECT_EQ(bottleneck_line(slow),
            "bottleneck: wire (up to 75 % of a step); a faster link or fewer bytes would help, "
            "about 4x fewer would hide behind compute");
}

TEST(Bottleneck, NamesNoFactorForAWireThatNothingHides) {
  const Bottleneck found =
      find_bottleneck({.compute_ms = 10.0, .wait_ms = 300.0, .wire_ms = 290.0});
  EXPECT_EQ(found.part, Part::wire);
  EXPECT_EQ(found.factor, 0.0);
}

TEST(Bottleneck, IsTheLoaderThatTheStepStandsStillFor) {
  const Bottleneck found =
      find_bottleneck({.loader_ms = 60.0, .compute_ms = 30.0, .wait_ms = 10.0, .wire_ms = 20.0});
  EXPECT_EQ(found.part, Part::loader);
  EXPECT_DOUBLE_EQ(found.share, 0.6);
}

TEST(Bottleneck, TellsEncodeFromDecode) {
  const StepTimes encode{.compute_ms = 10.0, .wait_ms = 50.0, .encode_ms = 45.0, .decode_ms = 5.0};
  EXPECT_EQ(find_bottleneck(encode).part, Part::encode);
  const StepTimes decode{.compute_ms = 10.0, .wait_ms = 50.0, .encode_ms = 5.0, .decode_ms = 45.0};
  EXPECT_EQ(find_bottleneck(decode).part, Part::decode);
}

TEST(Bottleneck, IsTheOthersWhereTheWaitIsLongerThanTheExchange) {
  const Bottleneck found =
      find_bottleneck({.compute_ms = 30.0, .wait_ms = 70.0, .encode_ms = 1.0, .wire_ms = 9.0});
  EXPECT_EQ(found.part, Part::workers);
  EXPECT_DOUBLE_EQ(found.share, 0.6);
}

TEST(Bottleneck, OfNothingMeasuredIsAZeroShare) { EXPECT_EQ(find_bottleneck({}).share, 0.0); }

}  // namespace
}  // namespace wisp
