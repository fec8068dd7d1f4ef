#include "models/classifier.h"

#include <gtest/gtest.h>

#include "models/mlp.h"
#include "models/resnet.h"
#include "tests/support/error_of.h"
#include "tests/support/image_models.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class OfInputs final : public Classifier {
 public:
  explicit OfInputs(int64_t classes, const ClassifierOptions& options = {})
      : Classifier(classes, options) {}

 private:
  Variable logits(const Variable& input) const override { return input; }
};

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const Metric& metric : model.metrics()) names.push_back(metric.name);
  return names;
}

TEST(Classifier, OfMoreThanTenClassesCountsTheFiveLikeliestToo) {
  TestContext worker;
  const Tensor logits({3, 12}, DType::f64);  // class c has logit c
  for (int64_t i = 0; i < logits.numel(); ++i)
    logits.data<double>()[i] = static_cast<double>(i % 12);
  const Batch batch{.inputs = {logits}, .targets = tensor_of<int32_t>({11, 7, 6}), .count = 3};
  OfInputs model(12);
  EXPECT_EQ(names_of(model), (std::vector<std::string>{"accuracy", "top5_accuracy"}));
  const Tensor sums = worker.context.zeros({2, 2}, DType::f64);
  model.measure(model.forward(worker.context, batch, {}), batch, sums);
  EXPECT_EQ(values(sums), (std::vector<double>{1, 3, 2, 3}));
}

TEST(Classifier, OfTenClassesHasTheAccuracyAlone) {
  const std::vector<std::string> accuracy{"accuracy"}, both{"accuracy", "top5_accuracy"};
  EXPECT_EQ(names_of(OfInputs(10)), accuracy);
  EXPECT_EQ(names_of(Mlp({}, image_facts(4, 4, 10))), accuracy);
  EXPECT_EQ(names_of(Mlp({}, image_facts(4, 4, 11))), both);
  EXPECT_EQ(names_of(ResNet(ResNetPlan::cifar(8), image_facts(4, 4, 100))), both);
}

TEST(Classifier, MixesSamplesInTrainingAlone) {
  TestContext worker;
  worker.context.samples = sample_ids(2);
  const Tensor x = tensor({2, 3}, {4, 0, 0, 0, 4, 0});
  const Batch batch{.inputs = {x}, .targets = tensor_of<int32_t>({0, 1}), .count = 2};
  OfInputs model(3, {.mixup = 1.0});
  const std::vector<double> mixed = values(model.forward(worker.context, batch, {}).output.value());
  EXPECT_NEAR(mixed[0] + mixed[1], 4.0, 1e-12);
  EXPECT_GT(mixed[0], mixed[1]);
  EXPECT_GT(mixed[1], 0.0);
  EXPECT_EQ(mixed[4], mixed[0]);
  EXPECT_EQ(values(x), (std::vector<double>{4, 0, 0, 0, 4, 0})) << "the loader's memory";
  worker.context.training = false;
  EXPECT_EQ(values(model.forward(worker.context, batch, {}).output.value()), values(x));
}

TEST(Classifier, ChecksItsKeys) {
  const auto error = [](const char* line) {
    Config config = Config::from_text(line, "run.toml");
    return error_of([&] { bind_classifier(config); });
  };
  EXPECT_EQ(error("model.mixup = 1.5"),
            "run.toml:1: model.mixup is 1.5, expected a number in [0, 1]");
  EXPECT_EQ(error("model.label_smoothing = 1.0"),
            "run.toml:1: model.label_smoothing is 1, expected a number in [0, 1)");
}

}  // namespace
}  // namespace wisp
