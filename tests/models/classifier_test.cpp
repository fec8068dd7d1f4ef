#include "models/classifier.h"

#include <gtest/gtest.h>

#include "models/mlp.h"
#include "models/resnet.h"
#include "tests/support/image_models.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class OfInputs final : public Classifier {
 public:
  explicit OfInputs(int64_t classes) : Classifier(classes, 0.0) {}
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    return classified(Variable(context, batch.inputs[0]), batch);
  }
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

}  // namespace
}  // namespace wisp
