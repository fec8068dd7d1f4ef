#include "core/train/plateau.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

const PlateauOptions kOptions{.factor = 0.5, .patience = 1, .threshold = 0.1};

std::vector<double> factors(Plateau& plateau, const std::vector<double>& losses) {
  std::vector<double> result;
  for (const double loss : losses) {
    plateau.observe(loss);
    result.push_back(plateau.factor());
  }
  return result;
}

TEST(Plateau, FallsAfterMoreThanPatienceEvaluationsThatAreNoBetter) {
  Plateau plateau(kOptions);
  // 0.91 is below 1, but by less than a tenth; 0.8 is better and starts the count anew
  EXPECT_EQ(factors(plateau, {1.0, 0.91, 0.8, 0.8, 0.75, 0.75, 0.75, 0.7, 0.7}),
            (std::vector<double>{1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25}));
}

TEST(Plateau, TakesANanForNoBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Plateau plateau(kOptions);
  EXPECT_EQ(factors(plateau, {nan, nan, 1.0, 1.0}), (std::vector<double>{1.0, 0.5, 0.5, 0.5}));
}

TEST(Plateau, StopsAtTheLowestFactor) {
  PlateauOptions options = kOptions;
  options.patience = 0;
  options.min_factor = 0.2;
  Plateau plateau(options);
  EXPECT_EQ(factors(plateau, {1.0, 1.0, 1.0, 1.0}), (std::vector<double>{1.0, 0.5, 0.25, 0.2}));
}

TEST(Plateau, GoesOnFromItsState) {
  const std::vector<double> losses = {1.0, 0.99, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3};
  Plateau whole(kOptions);
  const std::vector<double> expected = factors(whole, losses);
  for (size_t cut = 0; cut < losses.size(); ++cut) {
    Plateau first(kOptions), second(kOptions);
    factors(first, {losses.begin(), losses.begin() + static_cast<long>(cut)});
    std::memcpy(second.state().raw(), first.state().raw(),
                static_cast<size_t>(first.state().bytes()));
    const std::vector<double> rest =
        factors(second, {losses.begin() + static_cast<long>(cut), losses.end()});
    EXPECT_EQ(rest, std::vector<double>(expected.begin() + static_cast<long>(cut), expected.end()))
        << "cut at " << cut;
  }
}

TEST(Plateau, WithoutOptionsNeverMoves) {
  Plateau plateau(std::nullopt);
  EXPECT_EQ(factors(plateau, std::vector<double>(30, 1.0)).back(), 1.0);
}

TEST(Plateau, RefusesAStateThatNoLossesLeadTo) {
  const auto refusal = [](double factor, double best, double bad) {
    const Tensor state({3}, DType::f64);
    double* words = state.data<double>();
    words[0] = factor, words[1] = best, words[2] = bad;
    return error_of([&] { Plateau::check(state); });
  };
  EXPECT_EQ(refusal(1.0, std::numeric_limits<double>::infinity(), 0.0), "no error");
  EXPECT_EQ(refusal(0.0, -2.0, 7.0), "no error");
  EXPECT_EQ(refusal(-0.5, 1.0, 0.0), "the factor is -0.5, expected 0 to 1");
  EXPECT_EQ(refusal(1e30, 1.0, 0.0), "the factor is 1e+30, expected 0 to 1");
  EXPECT_NE(refusal(std::nan(""), 1.0, 0.0), "no error");
  EXPECT_NE(refusal(1.0, std::nan(""), 0.0), "no error");
  EXPECT_EQ(refusal(1.0, 1.0, -1.0), "the number of losses is -1, expected 0 or more");
  EXPECT_NE(refusal(1.0, 1.0, std::nan("")), "no error");
}

}  // namespace
}  // namespace wisp
