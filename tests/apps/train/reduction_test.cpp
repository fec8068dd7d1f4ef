// Tests of the bytes that compression saves, for a gradient of real size.
#include <gtest/gtest.h>

#include <memory>

#include "core/random.h"
#include "models/alexnet.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// A model of the paper, and how many times fewer bytes DGC sends of its gradient.
struct Published {
  const char* name;
  std::unique_ptr<Model> model;
  int64_t parameters;
  double reduction;
};

/// Source: Lin et al. 2018, tables 3 and 4, which have 277, 597 and 462. 6 bytes for each 1000th
/// weight, and 4 for each of the 54,120, 10,568 and 34,000 elements in vectors, give one more
/// digit.
std::vector<Published> published() {
  const Facts photos{.inputs = {{.name = "input", .sample = {224, 224, 3}}}, .classes = 1000};
  const Facts words{.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32}},
                    .classes = 10'000};
  std::vector<Published> models;
  models.push_back(
      {"ResNet-50", std::make_unique<ResNet>(ResNetPlan::imagenet(50), photos), 25'557'032, 276.7});
  models.push_back(
      {"AlexNet", std::make_unique<AlexNet>(AlexNetPlan::of_groups(2), photos), 60'965'224, 597.7});
  models.push_back(
      {"LSTM",
       std::make_unique<LstmLm>(LstmLmOptions{.layers = 2, .units = 1500, .tied = true}, words),
       51'034'000, 461.8});
  return models;
}

/// One step of a worker: the payloads are what the encoder wrote.
TEST(Reduction, OfDgcIsThePapers) {
  for (const Published& paper : published()) {
    ReplicaOptions options;
    options.shapes.clear();
    for (const Parameter* parameter : paper.model->parameters())
      options.shapes.push_back(parameter->shape);
    options.averaging.buckets = {};
    options.averaging.guard = false;  // one worker sends nothing, so the guard would go dense
    options.averaging.ratio = [](double) { return 0.001; };
    options.methods = [] {
      std::vector<Method> methods;
      methods.push_back({"dgc", make_method("dgc", "", {.momentum = 0.9}), Scope::layer});
      return methods;
    };
    options.method_of = [](const Segment& segment) {
      return segment.shape.rank() > 1 ? 0 : kDense;
    };
    const auto noise = [](int, int64_t, int segment, int64_t i) {
      const Philox random(3, 0, static_cast<uint64_t>(segment));
      return random.uniform(static_cast<uint64_t>(i)) - 0.5f;
    };
    run_workers(1, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      replica.step(0, noise);
      const StepCost& cost = replica.sync().cost();
      EXPECT_EQ(cost.bytes_raw, 4 * paper.parameters) << paper.name;
      // 0.2 % for what is rounded up in each matrix, and a size for each payload
      EXPECT_NEAR(static_cast<double>(cost.bytes_raw) / static_cast<double>(cost.bytes_encoded),
                  paper.reduction, 0.002 * paper.reduction)
          << paper.name;
    });
  }
}

}  // namespace
}  // namespace wisp
