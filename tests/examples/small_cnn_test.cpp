#include <gtest/gtest.h>

#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr const char* kConfig = R"(
threads = 1
workers = 2
model = { name = "small_cnn", channels = 4 }
data = { name = "synthetic", train_count = 32, test_count = 32, augment = false }
train.batch = 32
optimizer.lr = 0.05
)";

/// The loss of each of 60 steps on one batch.
std::vector<double> losses_on_one_batch(const Overrides& overrides) {
  std::vector<double> losses;
  with_replicas(Config::from_text(kConfig, "test.toml", overrides), [&](ReplicaTest& test) {
    test.loader.start_epoch(0);
    const Batch batch = *test.loader.next();
    for (int64_t step = 0; step < 60; ++step) {
      test.replica.step(step, 0.0, [&] { return batch; });
      const double loss = test.replica.tally().mean_loss();
      if (test.replica.rank() == 0) losses.push_back(loss);
    }
  });
  return losses;
}

TEST(SmallCnn, LearnsABatchByHeart) {
  for (const Overrides& precision :
       {Overrides{}, Overrides{"train.precision=bf16", "train.backend=reference"}}) {
    const std::vector<double> losses = losses_on_one_batch(precision);
    EXPECT_NEAR(losses.front(), 2.3, 0.5);  // ln 10, the loss of a guess among ten classes
    EXPECT_LT(losses.back(), 0.7 * losses.front());
  }
}

TEST(SmallCnn, HasNamedParametersOfEveryPart) {
  Config config = Config::from_text("model.channels = 4", "test");
  const auto model =
      make_model("small_cnn", config, {.inputs = {{"input", {8, 8, 1}}}, .classes = 10});
  std::vector<std::string> names;
  int64_t count = 0;
  for (const Parameter* parameter : model->parameters()) {
    names.push_back(parameter->name);
    count += parameter->shape.numel();
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1.weight", "prelu1.slope", "conv2.weight",
                                      "prelu2.slope", "classifier.weight", "classifier.bias"}));
  EXPECT_EQ(count, 9 * 4 + 1 + 9 * 4 * 8 + 1 + 8 * 10 + 10);
}

}  // namespace
}  // namespace wisp
