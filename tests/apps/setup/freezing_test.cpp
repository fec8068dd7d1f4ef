// Tests of frozen parameters in whole runs.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// The config of a ResNet-8. kFreeze freezes its first convolution, norm and stage.
Config resnet(const Overrides& overrides) {
  return Config::from_text(
      "threads = 1\nworkers = 2\nmodel.depth = 8\ndata.name = \"synthetic\"\n"
      "data.train_count = 64\ndata.test_count = 8\ntrain.batch = 16\n",
      "resnet.toml", overrides);
}
const Overrides kFreeze = {"train.freeze=[\"conv.weight\", \"norm.*\", \"stage1.*\"]"};

using Arena = std::map<std::string, std::vector<float>>;

Arena by_name(const Tensor& arena, std::span<const Segment> segments) {
  Arena values;
  for (const Segment& segment : segments) {
    const float* data = arena.data<float>() + segment.offset;
    values[segment.name] = {data, data + segment.numel};
  }
  return values;
}

/// State and cost of rank 0 after some steps.
struct Seen {
  Arena weights, gradients;
  int64_t frozen_numel = 0;
  StepCost cost;
  std::vector<std::string> state;
};

Seen after(int64_t steps, const Overrides& overrides) {
  Seen seen;
  with_replicas(resnet(overrides), [&](ReplicaTest& test) {
    test.steps(0, steps);
    if (test.replica.rank() != 0) return;
    const FlatParameters& parameters = test.replica.parameters();
    seen.weights = by_name(parameters.weight(), parameters.all_segments());
    seen.gradients = by_name(parameters.grad(), parameters.segments());
    for (const Segment& segment : parameters.all_segments()) seen.frozen_numel += segment.numel;
    seen.frozen_numel -= parameters.parameter_count();
    seen.cost = test.replica.synchronizer().cost();
    for (const SavedState& state : test.replica.state()) seen.state.push_back(state.name);
  });
  return seen;
}

TEST(Freezing, TakesExactlyTheFrozenBytesOffTheWire) {
  const Seen all = after(1, {}), part = after(1, kFreeze);
  const int64_t bytes = 4 * (3 * 9 * 16 + 32 + 2 * (16 * 9 * 16 + 32));
  EXPECT_EQ(4 * part.frozen_numel, bytes);
  EXPECT_EQ(part.cost.bytes_raw, all.cost.bytes_raw - bytes);
  EXPECT_EQ(part.cost.bytes_encoded, all.cost.bytes_encoded - bytes);
  // two workers send half of the elements twice, and the frozen elements split evenly
  EXPECT_EQ(part.cost.bytes_sent, all.cost.bytes_sent - bytes);
}

TEST(Freezing, LeavesTheOtherGradientsTheirBits) {
  const Seen all = after(1, {}), part = after(1, kFreeze);
  EXPECT_EQ(all.gradients.size(), part.gradients.size() + 9);
  for (const auto& [name, gradient] : part.gradients)
    EXPECT_EQ(gradient, all.gradients.at(name)) << name;
}

TEST(Freezing, KeepsFrozenWeightsAndMovesTheOthers) {
  for (const char* method : {"none", "dgc"}) {
    const Overrides run = kFreeze + method_overrides(method);
    const Seen before = after(0, run), later = after(5, run);
    for (const auto& [name, weight] : later.weights) {
      const bool trained = later.gradients.count(name) > 0;
      EXPECT_EQ(weight != before.weights.at(name), trained) << name;
    }
    for (const std::string& name : later.state) {
      const size_t slash = name.find('/');
      const std::string what = name.substr(0, slash), parameter = name.substr(slash + 1);
      if (what == "momentum" || what == "residual") {
        EXPECT_EQ(later.gradients.count(parameter), 1u) << name;
      }
    }
  }
}

TEST(Freezing, LetsTheRunningStatisticsOfAFrozenNormMove) {
  with_replicas(resnet(kFreeze), [&](ReplicaTest& test) {
    const auto mean = [&] {
      for (const SavedState& state : test.replica.state()) {
        if (state.name == "buffer/norm.running_mean") return *state.tensor.data<float>();
      }
      return 0.0f;
    };
    EXPECT_EQ(mean(), 0.0f);
    test.steps(0, 1);
    EXPECT_NE(mean(), 0.0f);
  });
}

TEST(Freezing, MayNotChangeWhenARunIsResumed) {
  const Overrides fewer = {"train.max_steps=2", "train.freeze=[]"};
  const Overrides more = {"train.max_steps=2", "train.freeze=[\"layer0.bias\"]"};
  for (const auto& runs : {std::pair(fewer, more), std::pair(more, fewer)}) {
    const TempDir dir;
    tiny_train(dir / "run", runs.first);
    const std::string error = error_of([&] {
      tiny_train(dir / "run", runs.second + Overrides{"train.max_steps=3"},
                 RunDirectory::Open::resume);
    });
    EXPECT_NE(error.find("momentum/layer0.bias"), std::string::npos) << error;
    EXPECT_NE(error.find("train.freeze?"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace wisp
