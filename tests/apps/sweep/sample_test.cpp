#include "apps/sweep/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace wisp {
namespace {

TEST(Sample, HasAMeanAndADeviation) {
  const std::vector<double> values{1.0, 3.0};
  EXPECT_EQ(mean_of(values), 2.0);
  EXPECT_DOUBLE_EQ(deviation_of(values), std::sqrt(2.0));
}

TEST(Sample, HasNoneWhereThereAreTooFewValues) {
  const std::vector<double> one{5.0};
  EXPECT_EQ(mean_of(one), 5.0);
  EXPECT_TRUE(std::isnan(deviation_of(one)));
  EXPECT_TRUE(std::isnan(mean_of({})));
}

}  // namespace
}  // namespace wisp
