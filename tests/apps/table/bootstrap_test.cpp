#include "apps/table/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

namespace wisp {
namespace {

using Differences = std::vector<std::vector<double>>;

double half_of(const Differences& differences, const std::vector<double>& divisors) {
  return bootstrap_half(differences, divisors);
}

TEST(Bootstrap, OfEqualDifferencesHasNoWidth) {
  EXPECT_EQ(half_of({{2, 2}, {2, 2}, {2, 2}}, {10, 10}), 0.0);
}

TEST(Bootstrap, SpreadsByPairs) {
  // The draws have 2, 4 or 6 of 20. A quarter of them have 2, a quarter 6.
  EXPECT_NEAR(half_of({{1, 1}, {3, 3}}, {10, 10}), 0.1, 1e-15);
}

TEST(Bootstrap, SpreadsByUnits) {
  // The mean is 4 of 20. A quarter of the draws have the first unit twice, 0 of 20; a quarter the
  // second, 8 of 20.
  EXPECT_NEAR(half_of({{0, 4}, {0, 4}}, {10, 10}), 0.2, 1e-15);
}

TEST(Bootstrap, ReachesToTheFartherEnd) {
  // The mean is 3 of 30. A quarter of the draws have 0 of 40, a quarter 6 of 20.
  EXPECT_NEAR(half_of({{0, 3}, {0, 3}}, {20, 10}), 0.2, 1e-15);
  EXPECT_NEAR(half_of({{0, -3}, {0, -3}}, {20, 10}), 0.2, 1e-15);
}

TEST(Bootstrap, OfOnePairIsUnknown) { EXPECT_TRUE(std::isnan(half_of({{0, 4}}, {10, 10}))); }

TEST(Bootstrap, OfFiguresThatAreNoNumbersIsUnknown) {
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(half_of({{0, nan, 1, 2}, {0, 4, 1, 2}}, {10, 10, 10, 10})));
  EXPECT_TRUE(std::isnan(half_of({{1, 0}, {2, 0}}, {10, 0})))
      << "draws of the second unit alone have no divisor";
}

TEST(Bootstrap, HasTheSpreadOfAnotherProgram) {
  // Word errors of three pairs, by the ten test speakers of AN4. A Python program with Philox gave
  // the figure for the same draws. A million draws of NumPy's generator gave 0.04714; of 10,000,
  // 0.0008 of standard deviation. Draws of pairs alone have 0.0453, of speakers alone 0.0227.
  const double half = half_of({{8, -2, -2, 4, 2, 3, 3, 2, 7, 2},
                               {-1, -8, -4, -4, 4, 2, 0, -7, -3, -10},
                               {8, 1, -5, -2, 5, -1, 0, -1, 6, 5}},
                              {74, 73, 80, 78, 82, 77, 81, 68, 71, 89});
  EXPECT_NEAR(half, 0.04667918380222255, 1e-12);
}

}  // namespace
}  // namespace wisp
