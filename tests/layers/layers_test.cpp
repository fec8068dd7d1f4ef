#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// A layer with allocated parameters.
template <class Layer>
struct Placed {
  template <class... Args>
  explicit Placed(Args... args)
      : layer(args...), parameters(worker.context, layer.parameters(), layer.buffers()) {}

  const Segment& segment(const std::string& name) const {
    for (const Segment& segment : parameters.segments()) {
      if (segment.name == name) return segment;
    }
    throw Error("test: no segment " + name);
  }
  std::vector<double> weight(const std::string& name) const {
    return values(FlatParameters::view(parameters.weight(), segment(name)));
  }

  TestContext worker;
  Layer layer;
  FlatParameters parameters;
};

double mean_square(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum / static_cast<double>(x.size());
}

double largest(const std::vector<double>& x) {
  double result = 0;
  for (const double value : x) result = std::max(result, std::abs(value));
  return result;
}

TEST(Conv2d, StartsNormalByFanOutAndMapsImages) {
  const ConvOptions options{.stride = 2, .pad = 1, .groups = 2};
  Placed<Conv2d> placed(32, 64, 3, options);
  EXPECT_EQ(placed.segment("weight").shape, Shape({64, 3, 3, 16}));
  EXPECT_TRUE(placed.segment("weight").decay);
  // variance of 9,216 draws: standard error 1.5 %
  EXPECT_NEAR(mean_square(placed.weight("weight")) / (2.0 / (64 * 9)), 1.0, 0.06);
  const Variable x(placed.worker.context, random_tensor({2, 5, 5, 32}, 1));
  EXPECT_EQ(placed.layer(x).shape(), Shape({2, 3, 3, 64}));
}

TEST(Conv2d, TakesAnotherNumberForEachAxisAndABias) {
  const ConvOptions options{.stride = {2, 1}, .pad = {1, 4}, .groups = 2};
  Placed<Conv2d> placed(8, 64, Axes(3, 11), options, true);
  EXPECT_EQ(placed.segment("weight").shape, Shape({64, 3, 11, 4}));
  EXPECT_EQ(placed.segment("bias").shape, Shape({64}));
  EXPECT_EQ(placed.segment("bias").kind, "bias");
  EXPECT_FALSE(placed.segment("bias").decay);
  EXPECT_NEAR(mean_square(placed.weight("weight")) / (2.0 / (64 * 33)), 1.0, 0.06);
  const double bound = 1.0 / std::sqrt(3 * 11 * 4);
  const std::vector<double> bias = placed.weight("bias");
  EXPECT_LE(largest(bias), bound);
  EXPECT_GT(largest(bias), 0.8 * bound) << "of 64 uniform draws";
  const Tensor zeros({1, 5, 6, 8}, DType::f64);
  const Variable y = placed.layer(Variable(placed.worker.context, zeros));
  ASSERT_EQ(y.shape(), Shape({1, 3, 4, 64}));
  const std::vector<double> found = values(y.value());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], bias[i % 64]) << i;
}

TEST(Conv2d, RefusesGroupsThatDoNotDivide) {
  EXPECT_NE(error_of([] { Conv2d(3, 8, 3, {.groups = 2}); }).find("3 to 8 channels"),
            std::string::npos);
}

TEST(Module, RefusesParametersWithoutElements) {
  EXPECT_EQ(error_of([] { Linear(0, 3); }), "parameter weight is (3, 0), expected no extent of 0");
}

TEST(Linear, StartsUniformWithinTheBoundAndTheBiasDoesNotDecay) {
  Placed<Linear> placed(int64_t{64}, int64_t{50});
  EXPECT_LE(largest(placed.weight("weight")), 1.0 / 8);
  EXPECT_LE(largest(placed.weight("bias")), 1.0 / 8);
  // the variance is a third of the squared bound; standard error of 3,200 draws: 1.6 %
  EXPECT_NEAR(mean_square(placed.weight("weight")) * 3 * 64, 1.0, 0.065);
  EXPECT_TRUE(placed.segment("weight").decay);
  EXPECT_FALSE(placed.segment("bias").decay);
}

TEST(BatchNorm, StartsAsTheIdentityOfNormalisedDataAndDoesNotDecay) {
  Placed<BatchNorm> placed(2);
  EXPECT_FALSE(placed.segment("gamma").decay);
  EXPECT_FALSE(placed.segment("beta").decay);
  placed.worker.context.training = false;
  const Tensor x = random_tensor({3, 2}, 1);
  const std::vector<double> y = values(placed.layer(Variable(placed.worker.context, x)).value());
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], values(x)[i] / std::sqrt(1.0 + 1e-5), 1e-12);
}

TEST(BatchNorm, MovesItsBuffersInTraining) {
  Placed<BatchNorm> placed(1);
  placed.layer(Variable(placed.worker.context, tensor({2, 1}, {1, 3})));
  ASSERT_EQ(placed.parameters.buffers().size(), 2u);
  // a tenth of the way to mean 2 and unbiased variance 2
  EXPECT_NEAR(values(placed.parameters.buffers()[0]->value)[0], 0.2, 1e-12);
  EXPECT_NEAR(values(placed.parameters.buffers()[1]->value)[0], 1.1, 1e-12);
}

TEST(Dropout, LayersOfDifferentNumbersChooseDifferently) {
  TestContext worker;
  worker.context.samples = sample_ids(1);
  const Variable x(worker.context, full({1, 64}, 1.0));
  const auto chosen = [&](uint64_t layer) { return values(Dropout(0.5, layer)(x).value()); };
  EXPECT_EQ(chosen(1), chosen(1));
  EXPECT_NE(chosen(1), chosen(2));
}

/// A tree two levels deep, whose parts a test may ask.
struct Leaf : Module {
  Leaf() { parameter("weight", {2}, {Init::Kind::normal, 1.0}), buffer("mean", {1}, 0.0); }
  using Module::parameter;
};
struct Branch : Module {
  Branch() { child("left", left), child("right", right); }
  Leaf left, right;
};
struct Tree : Module {
  Tree() { parameter("scale", {1}, {}), child("stem.0", stem), child("top", top); }
  using Module::child;
  Branch stem;
  Leaf top;
};

std::vector<std::string> names_in(Module& module) {
  std::vector<std::string> names;
  for (const Parameter* parameter : module.parameters()) names.push_back(parameter->name);
  for (const Buffer* buffer : module.buffers()) names.push_back(buffer->name);
  return names;
}

TEST(Module, NamesArePathsHoweverOftenAndInWhicheverOrderPartsAreAsked) {
  const std::vector<std::string> whole{"scale",      "stem.0.left.weight", "stem.0.right.weight",
                                       "top.weight", "stem.0.left.mean",   "stem.0.right.mean",
                                       "top.mean"};
  const std::vector<std::string> part{"stem.0.right.weight", "stem.0.right.mean"};
  Tree first;
  EXPECT_EQ(names_in(first), whole);
  EXPECT_EQ(names_in(first), whole) << "twice";
  EXPECT_EQ(names_in(first.stem.right), part) << "a part after the whole";
  EXPECT_EQ(names_in(first), whole);
  Tree second;
  EXPECT_EQ(names_in(second.stem.right), part) << "a part before the whole";
  EXPECT_EQ(names_in(second.stem).front(), "stem.0.left.weight");
  EXPECT_EQ(names_in(second), whole);
}

TEST(Module, FirstWeightsDoNotDependOnWhoAskedBefore) {
  const auto weights = [](bool asked) {
    TestContext worker;
    Tree tree;
    if (asked) names_in(tree.stem), names_in(tree);
    FlatParameters parameters(worker.context, tree.parameters(), tree.buffers());
    return values(parameters.weight());
  };
  EXPECT_EQ(weights(true), weights(false));
}

TEST(Module, WhatIsRegisteredLaterHasItsPathToo) {
  Tree tree;
  EXPECT_EQ(tree.stem.left.parameter("late", {1}, {}).name, "stem.0.left.late");
  Branch branch;
  tree.child("more", branch);
  EXPECT_EQ(names_in(branch.left).front(), "more.left.weight");
}

TEST(Module, HasOnePlace) {
  Tree tree;
  Leaf leaf;
  tree.child("a", leaf);
  EXPECT_EQ(error_of([&] { tree.child("b", leaf); }),
            "child b is already a child, with the path a. before its names; a module has one "
            "place");
}

}  // namespace
}  // namespace wisp
