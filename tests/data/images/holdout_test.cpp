#include "data/images/holdout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

/// A set whose sample i has the pixels i + {0, 1, 2, 3}.
ImageSet numbered(int64_t count) {
  ImageSet set = random_images({count, 2, 2, 1}, static_cast<int>(count));
  for (int64_t p = 0; p < set.images.numel(); ++p)
    set.images.data<uint8_t>()[p] = static_cast<uint8_t>(p / 4 + p % 4);
  return set;
}

/// The numbers of a part's samples in numbered(), by their labels. Expects their pixels to match.
std::vector<int32_t> numbers(const ImageSet& set) {
  const auto* label = set.labels.data<int32_t>();
  for (int64_t p = 0; p < set.images.numel(); ++p)
    EXPECT_EQ(set.images.data<uint8_t>()[p], label[p / 4] + p % 4);
  return {label, label + set.count()};
}

TEST(HoldOut, PartsAreDisjointCompleteAndInOrder) {
  const ImageSet set = numbered(200);
  for (const int64_t count : {1, 37, 100, 199}) {
    SCOPED_TRACE(count);
    const HeldOut parts = hold_out(set, count);
    EXPECT_EQ(parts.validation.count(), count);
    const std::vector<int32_t> left = numbers(parts.train), held = numbers(parts.validation);
    EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
    EXPECT_TRUE(std::is_sorted(held.begin(), held.end()));
    std::set<int32_t> all(left.begin(), left.end());
    all.insert(held.begin(), held.end());
    EXPECT_EQ(static_cast<int64_t>(left.size()), 200 - count);
    EXPECT_EQ(all.size(), 200u) << "each is in one part";
  }
}

TEST(HoldOut, TheChoiceIsFixed) {
  const ImageSet set = numbered(20);
  // resumed runs, and runs compared with them, rely on this choice
  EXPECT_EQ(numbers(hold_out(set, 5).validation), (std::vector<int32_t>{2, 3, 8, 17, 19}));
}

TEST(HoldOut, FollowsNeitherOrderNorClass) {
  ImageSet set = random_images({10000, 1, 1, 1}, 10000);
  std::iota(set.labels.data<int32_t>(), set.labels.data<int32_t>() + 10000, 0);
  const HeldOut parts = hold_out(set, 1000);
  std::vector<int> of_tenth(10), of_digit(10);
  for (int64_t i = 0; i < 1000; ++i) {
    const auto number = static_cast<size_t>(parts.validation.labels.data<int32_t>()[i]);
    ++of_tenth[number / 1000];
    ++of_digit[number % 10];
  }
  // hypergeometric: 100 ± 9; within four deviations
  for (const int count : of_tenth) EXPECT_NEAR(count, 100, 36);
  for (const int count : of_digit) EXPECT_NEAR(count, 100, 36);
}

TEST(HoldOut, PartsSayWhatTheSetSays) {
  ImageSet set = random_images({9, 4, 5, 3}, 7);
  set.name = "mine train";
  const HeldOut parts = hold_out(set, 4);
  for (const ImageSet* part : {&parts.train, &parts.validation}) {
    part->check();
    EXPECT_EQ(part->images.shape().with_rows(9), set.images.shape());
    EXPECT_EQ(part->classes, 7);
  }
  EXPECT_EQ(parts.train.name, "mine train");
  EXPECT_EQ(parts.validation.name, "mine train, held out");
}

TEST(HoldOut, NoneOrAllIsAnError) {
  for (const int64_t count : {0, 9, 10})
    EXPECT_EQ(error_of([&] {
                hold_out(random_images({9, 2, 2, 1}), count);
              }),
              concat("hold_out: ", count,
                     " of 9 samples of random images, expected at least 1 and fewer than all"));
}

}  // namespace
}  // namespace wisp
