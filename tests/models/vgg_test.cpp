#include "models/vgg.h"

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

VggPlan plan_of(int64_t depth, bool batch_norm) {
  VggPlan plan = VggPlan::of_depth(depth);
  plan.batch_norm = batch_norm;
  return plan;
}

/// A VGG of depth 11 with a 32nd of the channels.
VggPlan narrow(bool batch_norm) {
  VggPlan plan = plan_of(11, batch_norm);
  plan.width = 2;
  plan.hidden = 16;
  return plan;
}

TEST(Vgg, CountsNamesAndShapesAreTorchvisions) {
  const struct {
    int64_t depth, count;
    uint32_t names;
    bool batch_norm;
  } expected[] = {{11, 132'863'336, 0xd75166fd, false}, {11, 132'868'840, 0x0b73bff8, true},
                  {13, 133'047'848, 0x704b0f98, false}, {13, 133'053'736, 0x37958785, true},
                  {16, 138'357'544, 0x6a303dc7, false}, {16, 138'365'992, 0x500d5c83, true},
                  {19, 143'667'240, 0x463a4a6f, false}, {19, 143'678'248, 0x658cd7ad, true}};
  for (const auto& [depth, count, names, batch_norm] : expected) {
    Vgg counted(plan_of(depth, batch_norm), kImageNet),
        named(plan_of(depth, batch_norm), kImageNet);
    EXPECT_EQ(parameter_count(counted), count) << depth << (batch_norm ? " with norms" : "");
    EXPECT_EQ(checksum_of_names(named), names) << depth << (batch_norm ? " with norms" : "");
  }
}

/// For CIFAR-10: 14,714,688 numbers of convolutions, 8,448 of norms and 5,130 of the linear layer.
TEST(Vgg, WithoutHiddenLayersIsCifars) {
  VggPlan plan = plan_of(16, true);
  plan.hidden = 0;
  Vgg model(plan, image_facts(32, 32, 10));
  EXPECT_EQ(parameter_count(model), 14'728'266);
  VggPlan small = narrow(false);
  small.hidden = 0;
  TestContext worker{{.compute = DType::f32, .library = Library::fastest}};
  Vgg cifar(small, image_facts(32, 32, 10));
  FlatParameters parameters(worker.context, cifar.parameters(), cifar.buffers());
  const Step step = cifar.forward(worker.context, image_batch(4, 64, 32, DType::f32), {});
  EXPECT_EQ(step.output.shape(), Shape({4, 10})) << "any size";
  EXPECT_EQ(cifar.exchange_names("classifier.weight"),
            std::vector<std::string>{"classifier.weight"});
}

TEST(Vgg, LogitsOfDepth16ArePyTorchs) {
  FormulaModel<Vgg> rig(plan_of(16, false), image_facts(224, 224, kClasses));
  expect_logits(rig.logits(formula_image(224, 224)), {-1.740385, -1.448801, 2.907398, 0.400578,
                                                      1.316990, -0.890285, 0.015884, -1.256606});
  // 2 x 9 positions are averaged to 7 x 7
  expect_logits(rig.logits(formula_image(64, 288)), {-1.181591, -1.056116, 2.256925, 0.121508,
                                                     -0.012438, -1.534928, 0.705740, -1.892072});
}

TEST(Vgg, LogitsOfDepth16WithNormsArePyTorchs) {
  FormulaModel<Vgg> rig(plan_of(16, true), image_facts(224, 224, kClasses));
  expect_logits(rig.logits(formula_image(224, 224)), {-8.218205, -8.426784, 7.002650, 6.765789,
                                                      5.291766, -2.987046, 1.614584, 0.683298});
  expect_logits(rig.logits(formula_image(64, 288)), {-7.305332, -5.889799, 7.279306, 3.842701,
                                                     6.150559, -2.790319, 0.329075, -0.745214});
}

TEST(Vgg, StartsAsTorchvisions) {
  TestContext worker;
  Vgg model(narrow(true), image_facts(32, 32, 10));
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  for (const Segment& segment : parameters.segments()) {
    const std::vector<double> found = values(FlatParameters::view(parameters.weight(), segment));
    EXPECT_EQ(segment.decay, segment.shape.rank() > 1) << segment.name;
    if (segment.shape.rank() == 1) {
      const double start = segment.name.ends_with("gamma") ? 1.0 : 0.0;
      EXPECT_EQ(found, std::vector<double>(found.size(), start)) << segment.name;
      continue;
    }
    double squares = 0.0;
    for (const double value : found) squares += value * value;
    const double deviation = std::sqrt(squares / static_cast<double>(found.size()));
    // standard errors of 12,544 and 2,304 draws: 0.6 and 1.5 %
    if (segment.name == "classifier.0.weight") {
      EXPECT_NEAR(deviation, 0.01, 3e-4);
    } else if (segment.name == "features.25.weight") {
      EXPECT_NEAR(deviation / std::sqrt(2.0 / (9 * 16)), 1.0, 0.06);
    }
  }
}

TEST(Vgg, EveryParameterGetsAGradientAndHiddenLayersDropOut) {
  for (const bool batch_norm : {false, true}) {
    TestContext worker{{.compute = DType::f32, .library = Library::fastest}};
    Vgg model(narrow(batch_norm), image_facts(32, 64, 10));
    FlatParameters parameters(worker.context, model.parameters(), model.buffers());
    std::set<std::string> ready;
    parameters.on_grad_ready([&](const Segment& segment) { ready.insert(segment.name); });
    const Batch batch = image_batch(4, 32, 64, DType::f32);
    worker.context.samples = batch.samples;
    const Step step = model.forward(worker.context, batch, {});
    const std::vector<double> dropped = values(step.output.value());
    backward(step.loss);
    EXPECT_EQ(ready.size(), batch_norm ? 38u : 22u);
    for (const Segment& segment : parameters.segments()) {
      // a norm takes the mean out, and with it what the bias before it added
      if (batch_norm && segment.name.starts_with("features") && segment.kind == "bias") continue;
      const std::vector<double> found = values(FlatParameters::view(parameters.grad(), segment));
      EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](double g) { return g != 0; }))
          << segment.name;
    }
    if (batch_norm) continue;  // evaluation differs by the statistics, too
    worker.context.training = false;
    EXPECT_NE(values(model.forward(worker.context, batch, {}).output.value()), dropped);
  }
}

TEST(Vgg, IsMadeByItsKeysAndRefusesOthers) {
  const auto made = [](const std::string& keys, const Facts& facts) {
    Config config = Config::from_text("[model]\n" + keys, "test.toml");
    return parameter_count(*make_model("vgg", config, facts));
  };
  EXPECT_EQ(made("", kImageNet), 138'357'544);
  EXPECT_EQ(made("depth = 19\nbatch_norm = true", image_facts(32, 40, 1000)), 143'678'248);
  EXPECT_EQ(error_of([&] { made("depth = 17", kImageNet); }),
            "model.depth = 17, expected 11, 13, 16 or 19");
  EXPECT_EQ(made("batch_norm = true\nhidden_units = 0", image_facts(32, 32, 10)), 14'728'266);
  EXPECT_EQ(error_of([&] { made("hidden_units = -1", kImageNet); }),
            "vgg: hidden layers of -1 outputs, expected 0 or more");
  EXPECT_EQ(error_of([&] { made("dropout = -0.5", kImageNet); }),
            "vgg: a dropout of -0.5, expected a number in [0, 1)");
  EXPECT_EQ(error_of([&] { made("", image_facts(31, 224, 10)); }),
            "vgg: images of 31 x 224, expected at least 32 x 32");
}

}  // namespace
}  // namespace wisp
