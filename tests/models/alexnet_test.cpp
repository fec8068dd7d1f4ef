#include "models/alexnet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/io/config.h"
#include "tests/support/error_of.h"
#include "tests/support/formula_weights.h"
#include "tests/support/image_models.h"

namespace wisp {
namespace {

constexpr int64_t kClasses = 8;  // in scripts/torch_logits.py
const Facts kImageNet = image_facts(224, 224, 1000);
const AlexNetPlan kNarrow{.channels = {4, 6, 8, 8, 4}, .groups = 2, .hidden = 16};

TEST(AlexNet, HasTorchvisionsCountAndThePapers) {
  AlexNet one(AlexNetPlan::of_groups(1), kImageNet), two(AlexNetPlan::of_groups(2), kImageNet);
  EXPECT_EQ(parameter_count(one), 61'100'840);
  EXPECT_EQ(parameter_count(two), 60'965'224);
}

TEST(AlexNet, NamesAndShapesInFilesAreTorchvisions) {
  AlexNet one(AlexNetPlan::of_groups(1), kImageNet), two(AlexNetPlan::of_groups(2), kImageNet);
  EXPECT_EQ(checksum_of_names(one), 0xd449ab05u);
  EXPECT_EQ(checksum_of_names(two), 0x24ec90dbu);
}

TEST(AlexNet, LogitsArePyTorchs) {
  FormulaModel<AlexNet> rig(AlexNetPlan::of_groups(1), image_facts(224, 224, kClasses));
  expect_logits(rig.logits(formula_image(224, 224)), {-1.456557, 1.257248, -0.230031, 2.099780,
                                                      -1.385413, -1.594814, 3.837456, -3.232181});
  // 1 x 8 positions are averaged to 6 x 6
  const std::vector<double> oblong{-2.457194, 1.006663,  0.240531, 1.852870,
                                   -1.699465, -1.873551, 4.499245, -1.874727};
  expect_logits(rig.logits(formula_image(64, 288)), oblong);

  // the same weight with its columns in the order (H, W, C)
  const Tensor weight = rig.weight("classifier.1.weight");
  const Tensor turned = channels_last(weight.reshape({4096, 256, 6, 6}));
  copy_now(rig.worker.stream, turned.reshape(weight.shape()), weight);
  EXPECT_GT(std::abs(rig.logits(formula_image(64, 288))[0] - oblong[0]), 0.1);
}

TEST(AlexNet, WithGroupsLogitsArePyTorchs) {
  FormulaModel<AlexNet> rig(AlexNetPlan::of_groups(2), image_facts(224, 224, kClasses));
  expect_logits(rig.logits(formula_image(224, 224)), {-1.193678, -0.863951, 2.173644, 1.959864,
                                                      0.607036, -2.435420, 2.523455, -2.908015});
  expect_logits(rig.logits(formula_image(64, 288)), {-0.726063, -0.830463, 1.894329, 2.040963,
                                                     -0.114671, -2.018126, 2.403695, -2.963461});
}

TEST(AlexNet, WithoutGroupsStartsAsTorchvisions) {
  TestContext worker;
  AlexNetPlan plan = kNarrow;
  plan.groups = 1;
  AlexNet model(plan, image_facts(63, 63, 10));
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  for (const Segment& segment : parameters.segments()) {
    const bool bias = segment.name.ends_with("bias");
    EXPECT_EQ(segment.decay, !bias) << segment.name;
    if (segment.name != "classifier.1.weight") continue;
    double largest = 0.0;
    for (const double value : values(FlatParameters::view(parameters.weight(), segment)))
      largest = std::max(largest, std::abs(value));
    EXPECT_NEAR(largest, 1.0 / 12.0, 1e-3) << "of 2,304 uniform draws, 1 / sqrt(4 · 6 · 6)";
  }
}

TEST(AlexNet, WithGroupsStartsAsThePapers) {
  TestContext worker;
  AlexNet model(kNarrow, image_facts(63, 63, 10));
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  const std::set<std::string> ones{"features.3.bias", "features.8.bias", "features.10.bias",
                                   "classifier.1.bias", "classifier.4.bias"};
  for (const Segment& segment : parameters.segments()) {
    const std::vector<double> found = values(FlatParameters::view(parameters.weight(), segment));
    if (segment.name.ends_with("bias")) {
      EXPECT_EQ(found, std::vector<double>(found.size(), ones.contains(segment.name) ? 1.0 : 0.0))
          << segment.name;
    }
    if (segment.name != "classifier.1.weight") continue;
    double squares = 0.0;
    for (const double value : found) squares += value * value;
    // deviation of 2,304 draws: standard error 1.5 %
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(found.size())), 0.01, 6e-4);
  }
}

TEST(AlexNet, EveryParameterGetsAGradientAndHiddenLayersDropOut) {
  AlexNetPlan plan = kNarrow;
  plan.groups = 1;  // weights of deviation 0.01 leave little of a gradient
  TestContext worker{{.compute = DType::f32, .library = Library::fastest}};
  AlexNet model(plan, image_facts(63, 80, 10));
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  std::set<std::string> ready;
  parameters.on_grad_ready([&](const Segment& segment) { ready.insert(segment.name); });
  const Batch batch = image_batch(4, 63, 80, DType::f32);
  worker.context.samples = batch.samples;
  const Step step = model.forward(worker.context, batch, {});
  const std::vector<double> dropped = values(step.output.value());
  backward(step.loss);
  EXPECT_EQ(ready.size(), 16u);
  for (const Segment& segment : parameters.segments()) {
    const std::vector<double> found = values(FlatParameters::view(parameters.grad(), segment));
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](double g) { return g != 0; }))
        << segment.name;
  }
  worker.context.training = false;
  EXPECT_NE(values(model.forward(worker.context, batch, {}).output.value()), dropped);
}

TEST(AlexNet, IsMadeByItsKeysAndRefusesOthers) {
  const auto made = [](const std::string& keys, const Facts& facts) {
    Config config = Config::from_text("[model]\n" + keys, "test.toml");
    return parameter_count(*make_model("alexnet", config, facts));
  };
  EXPECT_EQ(made("groups = 2", kImageNet), 60'965'224);
  EXPECT_EQ(made("dropout = 0.0", image_facts(100, 80, 1000)), 61'100'840) << "another size";
  EXPECT_EQ(error_of([&] { made("groups = 3", kImageNet); }), "model.groups = 3, expected 1 or 2");
  EXPECT_EQ(error_of([&] { made("dropout = 1.0", kImageNet); }),
            "alexnet: a dropout of 1, expected a number in [0, 1)");
  EXPECT_EQ(error_of([&] { made("", image_facts(224, 62, 10)); }),
            "alexnet: images of 224 x 62, expected at least 63 x 63");
}

}  // namespace
}  // namespace wisp
