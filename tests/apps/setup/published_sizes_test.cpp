// Tests that compressed gradients of the papers' models have the papers' sizes, as planned and as
// encoded.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "core/random.h"
#include "models/alexnet.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "tests/support/exchange_plans.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

Facts text_facts(int64_t words) {
  return {.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32}}, .classes = words};
}
Facts image_facts(int64_t side, int64_t classes) {
  return {.inputs = {{.name = "input", .sample = {side, side, 3}}}, .classes = classes};
}

/// The plan of two workers for a model whose matrices `compressor` takes. Of two workers, each
/// sends its message once in any collective.
PhasePlan phase_of(Model&& model, std::unique_ptr<Compressor> compressor) {
  std::vector<Segment> shapes;
  for (const Parameter* parameter : model.parameters())
    shapes.push_back({.name = parameter->name, .shape = parameter->shape});
  const std::vector<Segment> segments = segments_of(shapes);
  Methods methods;
  methods.methods.push_back({"method", std::move(compressor), Scope::layer});
  for (const Segment& segment : segments)
    methods.method_of.push_back(segment.shape.rank() > 1 ? 0 : kDense);
  methods.ratio = [](double) { return 0.001; };
  TrainOptions two;
  two.workers = 2;
  return plan_exchange(methods, two, segments).phases.back();
}

std::unique_ptr<Compressor> of_rank(const char* method, int64_t rank) {
  return make_method(method, concat("compression.rank = ", rank));
}

/// ResNet-18 with the stem for CIFAR-10.
ResNet small_resnet18() {
  ResNetPlan plan = ResNetPlan::imagenet(18);
  plan.large_stem = false;
  return {plan, image_facts(32, 10)};
}

/// Source: Vogels et al. 2019, appendix F: ResNet-18 on CIFAR-10, 243, 136, 72 and 42 times less,
/// and the LSTM of 3 layers. Rows are words, gates or channels.
TEST(PublishedSizes, OfPowerSgd) {
  const std::vector<std::pair<int64_t, int64_t>> resnet = {
      {1, 45'935}, {2, 82'260}, {4, 154'910}, {7, 263'885}};
  for (const auto& [rank, numbers] : resnet) {
    const PhasePlan phase = phase_of(small_resnet18(), of_rank("powersgd", rank));
    EXPECT_EQ(phase.bytes_dense, 4.0 * 11'173'962);
    EXPECT_EQ(phase.bytes_sent, 4.0 * static_cast<double>(numbers)) << rank;
  }
  const std::vector<std::pair<int64_t, int64_t>> lstm = {{1, 93'488}, {2, 142'507}, {4, 240'545}};
  for (const auto& [rank, numbers] : lstm) {
    const PhasePlan phase =
        phase_of(LstmLm({.layers = 3, .units = 650, .tied = true}, text_facts(28'869)),
                 of_rank("powersgd", rank));
    EXPECT_EQ(phase.bytes_dense, 4.0 * 28'949'319);
    EXPECT_EQ(phase.bytes_sent, 4.0 * static_cast<double>(numbers)) << rank;
  }
}

/// ACP-SGD sends one of PowerSGD's two factors in a step (Zhang et al. 2023): a mean of rank (rows
/// + columns) / 2 of a matrix. Vectors are sent as they are.
TEST(PublishedSizes, OfAcpSgd) {
  const std::map<int64_t, double> reductions = {{1, 402.3}, {2, 243.3}, {4, 135.8}};
  for (const auto& [rank, reduction] : reductions) {
    const PhasePlan phase = phase_of(small_resnet18(), of_rank("acpsgd", rank));
    EXPECT_NEAR(phase.bytes_dense / phase.bytes_sent, reduction, 0.0005 * reduction) << rank;
  }
  const PhasePlan phase =
      phase_of(ResNet(ResNetPlan::imagenet(50), image_facts(224, 1000)), of_rank("acpsgd", 4));
  EXPECT_EQ(phase.bytes_dense, 4.0 * 25'557'032);
  EXPECT_NEAR(phase.bytes_dense / phase.bytes_sent, 116.6, 0.05);
}

/// Source: Lin et al. 2018, table 3, which has 462 times fewer bytes. 6 bytes for each 1000th
/// weight and 4 for each of 34,000 elements in vectors give 461.8. Capacities include the entries
/// that cut runs beyond 16 bits, here 1.1 %.
TEST(PublishedSizes, OfDgcInAPlan) {
  const PhasePlan phase =
      phase_of(LstmLm({.layers = 2, .units = 1500, .tied = true}, text_facts(10'000)),
               make_method("dgc", ""));
  EXPECT_EQ(phase.bytes_dense, 4.0 * 51'034'000);
  EXPECT_LT(phase.bytes_dense / phase.bytes_sent, 461.8);
  EXPECT_NEAR(phase.bytes_dense / phase.bytes_sent, 461.8, 0.012 * 461.8);
}

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
  const Facts photos = image_facts(224, 1000), words = text_facts(10'000);
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
TEST(PublishedSizes, OfDgcAsEncoded) {
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
