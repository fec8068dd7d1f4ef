#include "core/autograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/ops.h"
#include "tests/support/error_of.h"
#include "tests/support/leaves.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// The identity; calls `visit` when its gradient passes.
Variable probe(const Variable& x, const std::function<void()>& visit) {
  return record("probe", x.value(), {x}, [visit](const Tensor& dy, Inputs& in) {
    visit();
    const GradSlot dx = in.slot(0);
    for (int64_t i = 0; i < dy.numel(); ++i) {
      double& to = dx.into.data<double>()[i];
      to = (dx.accumulate ? to : 0.0) + dy.data<double>()[i];
    }
  });
}

class Autograd : public testing::Test {
 protected:
  Variable leaf(double value) { return leaves_.make(worker_.context, full({1}, value)); }
  double gradient(size_t id) const { return *leaves_.gradients()[id].data<double>(); }

  TestContext worker_;
  Leaves leaves_;
};

TEST_F(Autograd, DiamondAddsTheGradientsOfBothPaths) {
  const Variable x = leaf(3);
  const Variable a = add(x, x);
  const Variable b = relu(a);
  const Variable loss = add(add(a, b), b);  // 2x + 2x + 2x
  backward(loss);
  EXPECT_EQ(*loss.value().data<double>(), 18);
  EXPECT_EQ(gradient(0), 6);
}

TEST_F(Autograd, TiedWeightSumsItsUses) {
  const Variable weight = leaves_.make(worker_.context, full({1, 1}, 3));
  const Variable x(worker_.context, full({1, 1}, 5));
  backward(linear(linear(x, weight, {}), weight, {}));  // x w^2
  EXPECT_EQ(gradient(0), 2 * 5 * 3);
}

TEST_F(Autograd, TheGraphKeepsOnlyWhatABackwardFunctionOwns) {
  const Variable x = leaves_.make(worker_.context, full({1, 1000}, 1));
  const int64_t before = worker_.pool.stats().used_bytes;
  const Variable sum = add(add(add(x, x), x), x);  // the gradient of a sum reads no value
  EXPECT_LT(worker_.pool.stats().used_bytes - before, 2 * 8000);
  backward(linear(sum, Variable(worker_.context, full({1, 1000}, 1)), {}));
  EXPECT_EQ(gradient(0), 4);
}

TEST_F(Autograd, MicroBatchesAccumulateAndTheLastOneNotifies) {
  int notified = 0;
  leaves_.on_ready = [&](int) { ++notified; };
  const Variable x = leaf(1);
  backward(add(x, x), {.seed = 0.5, .notify = false});
  EXPECT_EQ(notified, 0);
  backward(add(x, x), {.seed = 0.5, .accumulate = true});
  EXPECT_EQ(notified, 1);
  EXPECT_EQ(gradient(0), 2);
  backward(relu(x));
  EXPECT_EQ(gradient(0), 1) << "a pass that does not accumulate overwrites";
}

TEST_F(Autograd, LeavesAreReadyNewestLayerFirstAndAtOnce) {
  std::vector<std::string> log;
  leaves_.on_ready = [&](int id) { log.push_back("ready " + std::to_string(id)); };
  Variable x(worker_.context, full({1}, 1));
  for (int layer = 0; layer < 3; ++layer) {
    x = probe(add(x, leaf(1)), [&log, layer] { log.push_back("layer " + std::to_string(layer)); });
  }
  backward(x);
  EXPECT_EQ(log, (std::vector<std::string>{"layer 2", "ready 2", "layer 1", "ready 1", "layer 0",
                                           "ready 0"}));
}

TEST_F(Autograd, ALeafIsReadyOnceAfterItsLastUse) {
  std::vector<std::string> log;
  leaves_.on_ready = [&](int id) { log.push_back("ready " + std::to_string(id)); };
  const Variable x = leaf(1);
  const Variable first = probe(x, [&] { log.push_back("first"); });
  const Variable second = probe(x, [&] { log.push_back("second"); });
  backward(add(first, second));
  EXPECT_EQ(log, (std::vector<std::string>{"second", "first", "ready 0"}));
}

TEST_F(Autograd, ATiedTableIsReadyOnceAndOthersDoNotWaitForIt) {
  std::vector<int> ready;
  leaves_.on_ready = [&](int id) { ready.push_back(id); };
  const auto make = [&](Shape shape) {
    return leaves_.make(worker_.context, random_tensor(shape, 1));
  };
  const int table = 0, first = 1, second = 2, bias = 3;
  const Variable words = make({5, 3}), w1 = make({3, 3}), w2 = make({3, 3}), b = make({5});
  const Variable x = embedding(words, tensor_of<int32_t>({1, 4}));
  const Variable h = linear(tanh(linear(x, w1, {})), w2, {});
  backward(cross_entropy(linear(h, words, b), tensor_of<int32_t>({2, 0})));
  EXPECT_EQ(ready, (std::vector<int>{bias, second, first, table}));
}

TEST_F(Autograd, LongChainNeedsNoStack) {
  const int length = 100'000;
  const auto chain = [&](Variable x) {
    for (int i = 0; i < length; ++i) x = reshape(x, {1});
    return x;
  };
  const Variable x = leaf(1);
  backward(chain(x));
  EXPECT_EQ(gradient(0), 1);
  chain(x);  // a graph that is destroyed without a backward pass
}

TEST_F(Autograd, OnlyInputsThatWantAGradientGetOne) {
  const Variable constant(worker_.context, full({1}, 2));
  const Variable x = leaf(1);
  Variable sum = add(constant, constant);
  EXPECT_FALSE(sum.requires_grad());
  const Variable loss = record("check", full({1}, 0), {sum, x}, [](const Tensor&, Inputs& in) {
    EXPECT_FALSE(in.wanted(0));
    EXPECT_TRUE(in.wanted(1));
    *in.slot(1).into.data<double>() = 7;
  });
  backward(loss);
  EXPECT_EQ(gradient(0), 7);
}

TEST_F(Autograd, WithoutRecordingThereIsNoGraph) {
  worker_.context.recording = false;
  const Variable x = leaf(1);
  EXPECT_FALSE(add(x, x).requires_grad());
}

TEST_F(Autograd, RefusesALossOfManyElements) {
  const Variable x = leaves_.make(worker_.context, full({2}, 1));
  EXPECT_EQ(error_of([&] { backward(relu(x)); }),
            "backward: the loss (relu) has shape (2), expected one element");
}

TEST_F(Autograd, RefusesAnInputWithoutAValue) {
  const Variable x = leaf(1);
  EXPECT_EQ(error_of([&] {
              record("probe", x.value(), {x, Variable()}, {});
            }),
            "probe: an input was used before it was given a value");
}

/// x * factor for a (1, 1) x, by a constant weight.
Variable times(const Variable& x, double factor) {
  return linear(x, Variable(x.context(), full({1, 1}, factor)), {});
}

TEST_F(Autograd, RefusesToWalkNowhere) {
  const Variable constant(worker_.context, full({1}, 1));
  EXPECT_NE(error_of([&] { backward(relu(constant)); }).find("nothing to differentiate"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { backward(leaf(1)); }),
            "backward: the loss is a parameter, expected the result of an op");
}

// L1 = 3 * 2w and L2 = 5 * 2w have the gradients 6 and 10; their sum has 16.
TEST_F(Autograd, LossesThatShareATrunkAreAddedAndNotWalkedOneByOne) {
  const Variable w = leaves_.make(worker_.context, full({1, 1}, 7));
  const Variable shared = add(w, w);
  const Variable first = times(shared, 3), second = times(shared, 5);
  backward(first);
  EXPECT_EQ(gradient(0), 6);
  EXPECT_EQ(error_of([&] { backward(second, {.accumulate = true}); }),
            "backward: the loss (linear) depends on add of shape (1, 1), which was walked already "
            "by an earlier backward(), which frees what it walks; add losses that share a part of "
            "the graph and call backward() once, or run that part's forward pass again");
  EXPECT_EQ(gradient(0), 6) << "a refused pass writes nothing";

  const Variable again = add(w, w);
  backward(add(times(again, 3), times(again, 5)));
  EXPECT_EQ(gradient(0), 16);
  backward(times(add(w, w), 3));
  backward(times(add(w, w), 5), {.accumulate = true});
  EXPECT_EQ(gradient(0), 16);
}

TEST_F(Autograd, ARefusedPassReachesNoLeafOfItsOwn) {
  std::vector<int> ready;
  leaves_.on_ready = [&](int id) { ready.push_back(id); };
  const Variable shared = relu(leaf(1));
  backward(add(shared, leaf(2)));
  EXPECT_EQ(ready, (std::vector<int>{1, 0}));
  const Variable other = add(leaf(3), shared);
  EXPECT_NE(error_of([&] { backward(other); }), "");
  EXPECT_EQ(ready.size(), 2u);
  EXPECT_TRUE(std::isnan(gradient(2))) << "nothing was written";
}

TEST_F(Autograd, NoPartOfAWalkedGraphIsWalkedAgain) {
  const auto refused = [](const Variable& loss, const std::string& op) {
    const std::string error = error_of([&] { backward(loss); });
    return error.find(op) != std::string::npos && error.find("walked already") != std::string::npos;
  };
  const Variable x = leaf(3);
  const Variable middle = tanh(x);
  const Variable loss = relu(middle);
  backward(loss);
  EXPECT_TRUE(refused(loss, "the loss (relu) of shape (1)")) << "the same loss";
  EXPECT_TRUE(refused(middle, "the loss (tanh)")) << "a part of it";
  EXPECT_TRUE(refused(relu(loss), "relu")) << "a new op on the loss";
  EXPECT_TRUE(refused(add(relu(x), middle), "tanh")) << "a new op on a part, and on a parameter";
  EXPECT_TRUE(refused(add(relu(add(middle, x)), x), "tanh")) << "deep below";

  const Variable lower = tanh(x);
  const Variable upper = relu(lower);
  backward(lower);
  EXPECT_TRUE(refused(upper, "tanh")) << "an op that was recorded before";

  const Variable value(worker_.context, middle.value());  // a constant of the same value
  backward(add(value, x));
  EXPECT_EQ(gradient(0), 1);
}

TEST_F(Autograd, AnOpThatForgetsAnInputIsNamed) {
  const Variable x = leaf(3);
  const auto forgets = [](const Tensor&, Inputs&) {};
  EXPECT_EQ(error_of([&] { backward(record("forgetful", full({1}, 0), {x}, forgets)); }),
            "backward: forgetful gave no gradient to its input leaf of shape (1)");
  EXPECT_EQ(error_of([&] { backward(record("forgetful", full({1}, 0), {relu(x)}, forgets)); }),
            "backward: forgetful gave no gradient to its input relu of shape (1)");
}

// The loss is (2b + 2b) + (a + 2b).
TEST_F(Autograd, APassAfterOneThatThrewIsWhole) {
  std::vector<int> ready;
  std::function<void(int)> hook = [&](int id) { ready.push_back(id); };
  leaves_.on_ready = [&](int id) { hook(id); };
  const Variable a = leaf(1), b = leaf(1);
  bool throws = true;
  const auto loss = [&] {
    const Variable twice = add(b, b);
    const Variable inner = probe(add(a, twice), [&] {
      if (throws) throw Error("no luck");
    });
    return add(add(twice, twice), inner);
  };
  const auto expect_whole = [&](const std::string& after) {
    ready.clear();
    backward(loss());
    EXPECT_EQ(ready, (std::vector<int>{0, 1})) << after;
    EXPECT_EQ(gradient(0), 1) << after;
    EXPECT_EQ(gradient(1), 6) << after;
  };
  const Variable failed = loss();
  EXPECT_EQ(error_of([&] { backward(failed); }), "no luck");
  EXPECT_EQ(ready, std::vector<int>{});
  throws = false;
  EXPECT_NE(error_of([&] { backward(failed); }).find("walked already"), std::string::npos);
  expect_whole("an op threw");

  for (const int at : {0, 1}) {
    hook = [&, at](int id) {
      if (id == at) throw Error("hook");
      ready.push_back(id);
    };
    EXPECT_EQ(error_of([&] { backward(loss()); }), "hook");
    hook = [&](int id) { ready.push_back(id); };
    expect_whole("a hook threw");
  }
}

TEST_F(Autograd, WhatAFailedPassDidNotReachHasItsGradientLater) {
  const Variable x = leaf(1);
  const Variable twice = add(x, x);
  const Variable fails = probe(twice, [] { throw Error("no luck"); });
  EXPECT_EQ(error_of([&] { backward(add(add(twice, twice), fails)); }), "no luck");
  backward(twice);  // no part of the failed pass's gradient of `twice` is left
  EXPECT_EQ(gradient(0), 2);
}

TEST_F(Autograd, AnOpMayRunAPassOfItsOwn) {
  const Variable x = leaf(1);
  const Variable outer = probe(add(x, x), [&] { backward(times(reshape(x, {1, 1}), 9)); });
  backward(outer, {.accumulate = false});
  EXPECT_EQ(gradient(0), 2);
}

/// Copy op: writes x into `kept` and returns it.
Variable copied(const Variable& x, const Tensor& kept) {
  std::copy_n(x.value().data<double>(), x.value().numel(), kept.data<double>());
  return record("copied", kept, {x}, [](const Tensor& dy, Inputs& in) {
    std::copy_n(dy.data<double>(), dy.numel(), in.slot(0).into.data<double>());
  });
}

/// 3 x. Its gradient may take the memory of x; `same` is set to whether it did.
Variable tripled(const Variable& x, bool& same) {
  return record("tripled", full({1}, 3 * *x.value().data<double>()), {x},
                [x = x.value(), &same](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0, x);
                  same = dx.into.raw() == x.raw();
                  double& to = *dx.into.data<double>();
                  to = (dx.accumulate ? to : 0.0) + 3 * *dy.data<double>();
                });
}

TEST_F(Autograd, AGradientTakesSpentMemoryThatNobodyElseHas) {
  const Variable x = leaf(5);
  bool same = false;
  const auto walk = [&](int64_t numel, Tensor& kept) {
    kept = worker_.context.empty({numel}, DType::f64);
    return tripled(copied(x, kept.rows(0, 1)), same);
  };
  Tensor kept;
  Variable loss = walk(1, kept);
  kept = {};
  backward(loss);
  EXPECT_TRUE(same);
  EXPECT_EQ(gradient(0), 3);

  backward(walk(1, kept));
  EXPECT_FALSE(same);
  EXPECT_EQ(*kept.data<double>(), 5);

  loss = walk(2, kept);
  kept = {};
  backward(loss);
  EXPECT_FALSE(same) << "a part of the memory";

  backward(tripled(x, same));
  EXPECT_FALSE(same) << "a leaf's gradient is its owner's";
  EXPECT_EQ(gradient(0), 3);
}

TEST_F(Autograd, SpentMemoryIsNotTakenBesideAGradient) {
  const Variable x = leaf(5);
  bool first = true, second = true;
  Variable y = copied(x, worker_.context.empty({1}, DType::f64));
  Variable loss = tripled(y, first);
  loss = add(loss, tripled(y, second));
  y = {};
  backward(loss);
  EXPECT_FALSE(second) << "the other op has yet to read it";
  EXPECT_FALSE(first);
  EXPECT_EQ(gradient(0), 6);
}

TEST_F(Autograd, MemoryGoesWhileBackwardWalks) {
  const int64_t numel = 1 << 16;
  const int64_t bytes = numel * 8;
  const auto used = [&] { return worker_.pool.stats().used_bytes; };
  const Variable x = leaves_.make(worker_.context, full({numel, 1}, 1));
  int64_t at_first_layer = 0;
  {
    Variable y = probe(relu(x), [&] { at_first_layer = used(); });
    for (int layer = 0; layer < 10; ++layer) y = relu(y);
    const Variable ones(worker_.context, full({1, numel}, 1));
    const Variable loss = linear(reshape(y, {1, numel}), ones, {});
    y = {};
    EXPECT_GE(used(), 11 * bytes);
    backward(loss);
  }
  // three tensors: the first layer's value, its dy and its dx; 64 KiB for the small tensors
  EXPECT_LE(at_first_layer, 3 * bytes + (1 << 16));
  EXPECT_EQ(used(), 0);
}

}  // namespace
}  // namespace wisp
