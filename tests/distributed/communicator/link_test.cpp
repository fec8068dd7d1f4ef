#include "distributed/communicator/link.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(Link, WithoutLimitsTakesNoTime) { EXPECT_EQ(duration_us({}, 1 << 30, 1 << 30, 6), 0.0); }

TEST(Link, IsFullDuplex) {
  const LinkSpec link{.gbit_per_s = 1.0};
  EXPECT_EQ(duration_us(link, 125'000, 0, 0), 1000.0);
  EXPECT_EQ(duration_us(link, 125'000, 125'000, 0), 1000.0);
  EXPECT_EQ(duration_us(link, 125'000, 250'000, 0), 2000.0);
}

TEST(Link, PaysLatencyForEachStep) {
  EXPECT_EQ(duration_us({.latency_us = 50.0}, 1000, 1000, 6), 300.0);
  EXPECT_EQ(duration_us({.gbit_per_s = 10.0, .latency_us = 50.0}, 125'000, 0, 2), 200.0);
}

}  // namespace
}  // namespace wisp
