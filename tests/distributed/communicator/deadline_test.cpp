#include "distributed/communicator/deadline.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

constexpr double kHourUs = 3600e6;

/// The time at which the deadline passes if it is polled at each next_us() and nothing comes.
double end_of(Deadline& deadline) {
  double at_us = deadline.next_us();
  while (!deadline.passed(at_us)) at_us = deadline.next_us();
  return at_us;
}

TEST(Deadline, PassesWhenTheTimeIsUp) {
  Deadline deadline(60.0);
  deadline.restart(1000.0);
  EXPECT_FALSE(deadline.passed(1000.0));
  EXPECT_LT(deadline.next_us(), 1000.0 + 10e6);
  EXPECT_DOUBLE_EQ(end_of(deadline), 1000.0 + 60e6);
  EXPECT_TRUE(deadline.passed(1000.0 + 60e6)) << "and stays so";
}

TEST(Deadline, DoesNotDependOnHowOftenOneLooks) {
  Deadline deadline(60.0);
  deadline.restart(0.0);
  double at_us = 0.0;
  while (!deadline.passed(at_us)) at_us += 1000.0;
  EXPECT_NEAR(at_us, 60e6, 1001.0);
}

/// A stopped process sees the clock jump when it continues. The awaited event may have happened
/// meanwhile, or the other process may have been stopped as well.
TEST(Deadline, AStopIsNoWait) {
  Deadline deadline(60.0);
  deadline.restart(0.0);
  EXPECT_FALSE(deadline.passed(kHourUs));
  EXPECT_GT(deadline.next_us(), kHourUs);
  EXPECT_GT(end_of(deadline), kHourUs + 50e6);
}

TEST(Deadline, IsLongFromAQuarterOfTheTimeOn) {
  Deadline deadline(60.0);
  deadline.restart(0.0);
  for (double at_us = 0.0; at_us < 15e6; at_us += 1e6) {
    deadline.passed(at_us);
    EXPECT_FALSE(deadline.is_long()) << at_us;
  }
  deadline.passed(15e6);
  EXPECT_TRUE(deadline.is_long());
  deadline.restart(15e6);
  EXPECT_FALSE(deadline.is_long());
}

TEST(Deadline, BeginsAnewWhenSomethingComes) {
  Deadline deadline(60.0);
  deadline.restart(0.0);
  while (!deadline.passed(deadline.next_us()) && deadline.next_us() < 50e6) {
  }
  deadline.restart(55e6);
  EXPECT_DOUBLE_EQ(end_of(deadline), 115e6);
}

}  // namespace
}  // namespace wisp
