#include "core/train/freeze.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/ops.h"
#include "tests/support/counting_backend.h"
#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

Config freezing(const std::string& patterns) {
  return Config::from_text("[train]\nfreeze = " + patterns + "\n", "my.toml");
}

/// Four convolutions of 2 channels, in the order of the forward pass.
struct Chain {
  explicit Chain(const std::string& patterns) {
    Config config = freezing(patterns);
    freeze(config, pointers());
    parameters.emplace(worker.context, pointers(), std::vector<Buffer*>{});
  }
  std::vector<Parameter*> pointers() {
    std::vector<Parameter*> all;
    for (Parameter& parameter : declared) all.push_back(&parameter);
    return all;
  }
  static Parameter conv(const char* name) {
    return {name, {2, 3, 3, 2}, {Init::Kind::normal, 0.5}, true, {}};
  }

  TestContext worker;
  Parameter declared[4] = {conv("stem.weight"), conv("stage1.weight"), conv("stage2.weight"),
                           conv("head.weight")};
  std::optional<FlatParameters> parameters;
};

TEST(Freeze, LeavesNoGradientSegmentAndNoState) {
  Chain chain("[\"st*\"]");
  FlatParameters& parameters = *chain.parameters;
  ASSERT_EQ(parameters.segments().size(), 1u);
  EXPECT_EQ(parameters.segments()[0].name, "head.weight");
  EXPECT_EQ(parameters.parameter_count(), 36);
  EXPECT_EQ(parameters.grad().numel(), 40);  // 36 numbers, padded to 64 bytes
  EXPECT_EQ(parameters.state("momentum").numel(), 40);
  EXPECT_EQ(parameters.numel(), 4 * 40);
}

TEST(Freeze, KeepsTheInitialWeightsOfAnUnfrozenModel) {
  Chain frozen("[\"stage1.weight\", \"stem.*\"]");
  Chain free("[]");
  ASSERT_EQ(frozen.parameters->all_segments().size(), 4u);
  for (const Segment& segment : frozen.parameters->all_segments()) {
    for (const Segment& same : free.parameters->all_segments()) {
      if (same.name != segment.name) continue;
      EXPECT_EQ(values(FlatParameters::view(frozen.parameters->weight(), segment)),
                values(FlatParameters::view(free.parameters->weight(), same)))
          << segment.name;
    }
  }
}

TEST(Freeze, BackwardComputesOnlyWhatATrainedWeightNeeds) {
  struct Case {
    const char* patterns;
    int dx, dw;
  };
  for (const Case& expected :
       {Case{"[]", 3, 4},           //
        Case{"[\"stem*\"]", 2, 3},  // nothing to train below stage1
        Case{"[\"stage2*\"]", 3, 3}, Case{"[\"stem*\", \"stage2*\"]", 2, 2},
        Case{"[\"stem*\", \"stage*\"]", 0, 1}, Case{"[\"stage*\", \"head*\"]", 3, 1}}) {
    Chain chain(expected.patterns);
    CountingBackend counting(*chain.worker.backend);
    Context context{.stream = chain.worker.stream,
                    .backend = counting,
                    .pool = chain.worker.pool,
                    .compute = DType::f64};
    Variable x(context, random_tensor({2, 4, 4, 2}, 1));
    for (const Parameter& parameter : chain.declared)
      x = relu(conv2d(x, parameter.variable, {.pad = 1}));
    Tensor labels({2}, DType::i32);
    labels.data<int32_t>()[0] = labels.data<int32_t>()[1] = 1;
    backward(cross_entropy(global_avg_pool(x), labels));
    EXPECT_EQ(counting.conv_dx, expected.dx) << expected.patterns;
    EXPECT_EQ(counting.conv_dw, expected.dw) << expected.patterns;
  }
}

TEST(Freeze, NamesThePatternThatFitsNothingAndTheNearestNames) {
  EXPECT_EQ(
      error_of([] { Chain("[\"stem*\", \"stage3.weight\"]"); }),
      "my.toml:2: train.freeze: no parameter's name fits 'stage3.weight'; nearest: stage1.weight, "
      "stage2.weight, stem.weight");
}

TEST(Freeze, LeavesSomethingToTrain) {
  EXPECT_EQ(error_of([] { Chain("[\"stem*\", \"*t\"]"); }),
            "my.toml:2: train.freeze leaves nothing to train");
}

}  // namespace
}  // namespace wisp
