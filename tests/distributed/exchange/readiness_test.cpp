#include "distributed/exchange/readiness.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/support/error_of.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// Four parameters, which the arena holds in the order d, c, b, a. Parameters c and b form a unit;
/// the others go dense.
class ReadinessOf4 : public testing::Test {
 protected:
  std::optional<int> complete(const char* name) {
    for (const Segment& segment : parameters_.segments()) {
      if (segment.name == name) return readiness_.complete(segment, worker_.context.stream);
    }
    throw Error(name);
  }

  TestContext worker_;
  std::deque<Parameter> declared_{{"a", {3}, {}, true, {}},
                                  {"b", {4}, {}, true, {}},
                                  {"c", {5}, {}, true, {}},
                                  {"d", {6}, {}, true, {}}};
  FlatParameters parameters_{
      worker_.context, {&declared_[0], &declared_[1], &declared_[2], &declared_[3]}, {}};
  Cut cut_ = make_cut(parameters_.segments(), 4, std::vector<int>{kDense, 0, 0, kDense},
                      std::vector<CutMethod>(1), {.bucket_bytes = 1 << 20}, {});
  Readiness readiness_{parameters_, cut_};
};

TEST_F(ReadinessOf4, CountsItemsAsUnitsThenDenseSegments) {
  EXPECT_EQ(readiness_.items(), 2);
  EXPECT_EQ(readiness_.awaited_items(), 2);
  EXPECT_EQ(readiness_.segments_of(0), (std::vector<int>{1, 2}));
  EXPECT_EQ(readiness_.segments_of(1), (std::vector<int>{0, 3}));
  EXPECT_EQ(readiness_.item_of()[2], 0);
  EXPECT_EQ(readiness_.item_of()[3], 1);
}

TEST_F(ReadinessOf4, TellsWhichGradientCompletedAnItem) {
  for (int step = 0; step < 2; ++step) {
    readiness_.begin();
    EXPECT_EQ(complete("d"), std::nullopt);
    EXPECT_EQ(complete("b"), std::nullopt);
    EXPECT_EQ(complete("c"), 0);
    EXPECT_EQ(complete("a"), 1);
    readiness_.check_complete();
  }
}

TEST_F(ReadinessOf4, RefusesAGradientThatIsNotAwaited) {
  const char* const expected = "the gradient of b became complete outside a step, or twice in one";
  EXPECT_EQ(error_of([&] { complete("b"); }), expected);
  readiness_.begin();
  complete("b");
  EXPECT_EQ(error_of([&] { complete("b"); }), expected);
}

TEST_F(ReadinessOf4, NamesWhatIsMissing) {
  readiness_.begin();
  complete("c");
  complete("a");
  EXPECT_EQ(error_of([&] { readiness_.check_complete(); }),
            "backward gave no gradient to d, b: freeze what the loss does not use");
}

}  // namespace
}  // namespace wisp
