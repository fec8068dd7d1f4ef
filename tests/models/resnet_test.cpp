#include "models/resnet.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/io/config.h"
#include "core/op_log.h"
#include "models/mlp.h"
#include "tests/support/error_of.h"
#include "tests/support/formula_weights.h"
#include "tests/support/image_models.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

const Facts kCifar = image_facts(32, 32, 10);

/// A model with its parameters, and the worker that holds them.
struct Replica {
  Replica(const ResNetPlan& plan, TestContextOptions options, ResNetOptions model_options = {})
      : worker(options),
        model(plan, kCifar, model_options),
        parameters(worker.context, model.parameters(), model.buffers()) {}

  TestContext worker;
  ResNet model;
  FlatParameters parameters;
};

TEST(ResNetCifar, HasThePapersParameterCounts) {
  const std::pair<int64_t, int64_t> counts[] = {
      {20, 269'722}, {32, 464'154}, {44, 658'586}, {56, 853'018}, {110, 1'727'962}};
  for (const auto& [depth, count] : counts) {
    ResNet model(ResNetPlan::cifar(depth), kCifar);
    EXPECT_EQ(parameter_count(model), count) << depth;
  }
}

TEST(ResNetCifar, EveryDepthGivesLogitsAndALoss) {
  for (const int64_t depth : {20, 32, 44, 56, 110}) {
    Replica replica(ResNetPlan::cifar(depth), {.compute = DType::f32, .library = Library::fastest});
    replica.worker.context.recording = false;
    // 4 x 4 images: the network does not depend on their size
    const Step step =
        replica.model.forward(replica.worker.context, image_batch(2, 4, 4, DType::f32), {});
    EXPECT_EQ(step.output.shape(), Shape({2, 10})) << depth;
    EXPECT_EQ(step.loss.shape().numel(), 1);
    EXPECT_TRUE(std::isfinite(values(step.loss.value())[0])) << depth;
  }
}

TEST(ResNetCifar, NamesItsParametersByPath) {
  Replica replica(ResNetPlan::cifar(20), {});
  std::vector<std::string> names;
  for (const Segment& segment : replica.parameters.segments()) {
    names.push_back(segment.name);
    EXPECT_EQ(segment.decay, segment.shape.rank() > 1) << segment.name;
  }
  ASSERT_EQ(names.size(), 59u);  // 19 convolutions, 19 · 2 of norms, 2 of the classifier
  EXPECT_EQ(names.front(), "classifier.bias");
  EXPECT_EQ(names.back(), "conv.weight");
  EXPECT_NE(std::find(names.begin(), names.end(), "stage3.block2.norm2.gamma"), names.end());
  EXPECT_EQ(replica.parameters.buffers().size(), 38u);
}

TEST(ResNetCifar, EvaluationLeavesTheBuffersAlone) {
  Replica replica(ResNetPlan::cifar(20), {.compute = DType::f32});
  const auto buffers = [&] {
    std::vector<std::vector<double>> contents;
    for (const Buffer* buffer : replica.parameters.buffers())
      contents.push_back(values(buffer->value));
    return contents;
  };
  const Batch batch = image_batch(2, 8, 8, DType::f32);
  const auto before = buffers();
  replica.worker.context.training = false;
  replica.model.forward(replica.worker.context, batch, {});
  EXPECT_EQ(buffers(), before);
  replica.worker.context.training = true;
  replica.model.forward(replica.worker.context, batch, {});
  EXPECT_NE(buffers(), before);
}

/// |a - b|² / |b|² over a segment.
double relative_square(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a);
  const std::vector<double> y = values(b);
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  return error / size;
}

TEST(ResNetCifar, FloatGradientsOfTheFastestBackendMatchTheReferenceInDouble) {
  Replica fast(ResNetPlan::cifar(20), {.compute = DType::f32, .library = Library::fastest});
  Replica exact(ResNetPlan::cifar(20), {.compute = DType::f64});
  const Step fast_step =
      fast.model.forward(fast.worker.context, image_batch(4, 8, 8, DType::f32), {});
  const Step step = exact.model.forward(exact.worker.context, image_batch(4, 8, 8, DType::f64), {});
  // f32 rounds at 6e-8; 20 layers with batch norm over 4 images magnify that by up to 100
  EXPECT_NEAR(values(fast_step.loss.value())[0], values(step.loss.value())[0], 1e-5);
  backward(fast_step.loss);
  backward(step.loss);
  for (const Segment& segment : exact.parameters.segments()) {
    const Segment& same =
        fast.parameters.segments()[static_cast<size_t>(segment.id)];  // offsets differ
    // measured: up to 8e-11, mostly from ReLUs whose input rounds to the other side of 0
    EXPECT_LT(relative_square(FlatParameters::view(fast.parameters.grad(), same),
                              FlatParameters::view(exact.parameters.grad(), segment)),
              1e-9)
        << segment.name;
  }
}

TEST(ResNetCifar, ALateStreamGivesTheSameBits) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);  // one thread, like the late stream
  const auto gradients = [](bool late) {
    Replica replica(ResNetPlan::cifar(20),
                    {.compute = DType::f32, .late = late, .library = Library::fastest});
    const Batch batch = image_batch(4, 8, 8, DType::f32);  // must live until the stream is done
    const Step step = replica.model.forward(replica.worker.context, batch, {});
    backward(step.loss);
    replica.worker.stream.synchronize();
    std::vector<double> result = values(replica.parameters.grad());
    result.push_back(values(step.loss.value())[0]);
    return result;
  };
  EXPECT_EQ(gradients(true), gradients(false));
  omp_set_num_threads(threads);
}

TEST(ResNetCifar, RefusesOtherDepthsAndShapes) {
  EXPECT_NE(error_of([] { ResNetPlan::cifar(21); }).find("20, 32, 44, 56 or 110"),
            std::string::npos);
  EXPECT_NE(error_of([] { ResNetPlan::cifar(2); }).find("model.depth = 2"), std::string::npos);
  EXPECT_NE(error_of([] { ResNetPlan::cifar(6000002); }).find("model.depth = 6000002"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              ResNet(ResNetPlan::cifar(20), {.inputs = {{"input", {784}}}, .classes = 10});
            }).find("(784)"),
            std::string::npos);
}

// ---------------------------------------------------------------- ImageNet

constexpr int64_t kDepths[] = {18, 34, 50, 101, 152};
const Facts kImageNet = image_facts(224, 224, 1000);

TEST(ResNet, HasThePublishedParameterCounts) {
  // torchvision's models; the paper gives no counts
  const int64_t counts[] = {11'689'512, 21'797'672, 25'557'032, 44'549'160, 60'192'808};
  for (size_t i = 0; i < std::size(kDepths); ++i) {
    ResNet model(ResNetPlan::imagenet(kDepths[i]), kImageNet);
    EXPECT_EQ(parameter_count(model), counts[i]) << kDepths[i];
  }
}

TEST(ResNet, OfDepth18ForSmallPicturesHasTheCountOfPowerSgdsAuthors) {
  // Vogels et al. 2019: W = 11,173,962, of which B = 9,610 are vectors (the sizes of their table)
  ResNetPlan plan = ResNetPlan::imagenet(18);
  plan.large_stem = false;
  ResNet model(plan, kCifar);
  EXPECT_EQ(parameter_count(model), 11'173'962);
  int64_t vectors = 0;
  for (const Parameter* parameter : model.parameters())
    vectors += parameter->shape.rank() == 1 ? parameter->shape.numel() : 0;
  EXPECT_EQ(vectors, 9'610);
}

TEST(ResNet, ReadsItsStem) {
  const auto made = [](const std::string& stem) {
    Config config = Config::from_text("[model]\ndepth = 18\nstem = '" + stem + "'", "c.toml");
    return parameter_count(*make_model("resnet", config, kCifar));
  };
  EXPECT_EQ(made("3x3"), 11'173'962);
  EXPECT_EQ(made("7x7"), 11'181'642);
  EXPECT_NE(
      error_of([&] { made("5x5"); }).find("c.toml:3: model.stem is '5x5', expected 7x7 or 3x3"),
      std::string::npos);
}

TEST(ResNet, NamesAndShapesInFilesAreTorchvisions) {
  // of torchvision 0.29
  const uint32_t expected[] = {0x666e58d0, 0x7e0d8ec6, 0xb8af849f, 0x4da5f1ef, 0x740d84be};
  for (size_t i = 0; i < std::size(kDepths); ++i) {
    ResNet model(ResNetPlan::imagenet(kDepths[i]), kImageNet);
    EXPECT_EQ(checksum_of_names(model), expected[i]) << kDepths[i];
  }
}

TEST(ResNet, LogitsOfDepth50ArePyTorchs) {
  FormulaModel<ResNet> rig(ResNetPlan::imagenet(50), image_facts(224, 224, 8));
  expect_logits(rig.logits(formula_image(224, 224)), {-2.175635, -4.783888, 4.356603, -0.671080,
                                                      -4.746874, -4.217487, 5.052213, 2.373533});
  expect_logits(rig.logits(formula_image(64, 288)), {-1.999133, -4.112531, 3.646569, 0.423318,
                                                     -2.986854, -3.173471, 4.437435, 1.770103});
}

TEST(ResNet, TheStemQuartersTheSideAndThreeStagesHalveIt) {
  for (const bool bottleneck : {false, true}) {
    Replica replica({.blocks = {1, 1, 1, 1}, .width = 8, .bottleneck = bottleneck},
                    {.compute = DType::f32, .library = Library::fastest});
    Context& context = replica.worker.context;
    std::vector<LoggedOp> log;
    context.log = &log;
    const Step step = replica.model.forward(context, image_batch(2, 64, 64, DType::f32), {});
    EXPECT_EQ(step.output.shape(), Shape({2, 10}));
    std::vector<Shape> pooled;
    for (const LoggedOp& op : log) {
      if (op.name.find("pool") != std::string::npos) pooled.push_back(op.inputs[0].shape());
    }
    EXPECT_EQ(pooled, (std::vector<Shape>{{2, 32, 32, 8}, {2, 2, 2, bottleneck ? 256 : 64}}));
  }
}

TEST(ResNet, BottlenecksStrideInTheirMiddle) {
  TestContext worker;
  ResidualBlock block(256, 128, {.stride = 2, .bottleneck = true});
  FlatParameters parameters(worker.context, block.parameters(), block.buffers());
  std::vector<LoggedOp> log;
  worker.context.log = &log;
  const Variable x(worker.context, random_tensor({1, 4, 4, 256}, 1));
  EXPECT_EQ(block(x).shape(), Shape({1, 2, 2, 512}));
  std::vector<Shape> convolved;
  for (const LoggedOp& op : log) {
    if (op.name == "conv2d") convolved.push_back(op.output.shape());
  }
  // the projection, then 1 x 1, 3 x 3 with the stride, 1 x 1
  EXPECT_EQ(convolved,
            (std::vector<Shape>{{1, 2, 2, 512}, {1, 4, 4, 128}, {1, 2, 2, 128}, {1, 2, 2, 512}}));
}

/// A step of plain gradient descent.
void descend(FlatParameters& parameters, double rate) {
  double* weight = parameters.weight().data<double>();
  const double* gradient = parameters.grad().data<double>();
  for (int64_t i = 0; i < parameters.numel(); ++i) weight[i] -= rate * gradient[i];
}

TEST(ResNet, GoldenLossesOnTheReference) {
  // Recorded from this code, whose logits agree with torchvision's. In f64, another compiler's
  // order of operations stays below the tolerance.
  const double golden[] = {2.3967273612550697, 1.7880220336569406, 1.2422701655100032};
  Replica replica({.blocks = {1, 1}, .width = 8, .bottleneck = true}, {});
  const Batch batch = image_batch(4, 16, 16, DType::f64);
  for (const double expected : golden) {
    const Step step = replica.model.forward(replica.worker.context, batch, {});
    EXPECT_NEAR(values(step.loss.value())[0], expected, 1e-9);
    backward(step.loss);
    descend(replica.parameters, 0.1);
  }
}

TEST(ResNet, EveryParameterGetsAGradient) {
  for (const bool zero_init : {false, true}) {
    Replica replica({.blocks = {2, 2, 2, 2}, .width = 8, .bottleneck = true},
                    {.compute = DType::f32, .library = Library::fastest},
                    {.zero_init_residual = zero_init});
    std::set<std::string> ready;
    replica.parameters.on_grad_ready([&](const Segment& segment) { ready.insert(segment.name); });
    backward(
        replica.model.forward(replica.worker.context, image_batch(4, 32, 32, DType::f32), {}).loss);
    EXPECT_EQ(ready.size(), replica.parameters.segments().size());
    for (const Segment& segment : replica.parameters.segments()) {
      const Tensor gradient = FlatParameters::view(replica.parameters.grad(), segment);
      const std::vector<double> found = values(gradient);
      const bool flows = std::any_of(found.begin(), found.end(), [](double g) { return g != 0; });
      // no gradient flows behind a scale that is still 0
      const bool behind = zero_init && segment.name.find("block") != std::string::npos &&
                          segment.name.find("shortcut") == std::string::npos &&
                          segment.name.find("norm3") == std::string::npos;
      EXPECT_EQ(flows, !behind) << segment.name;
    }
  }
}

TEST(ResNet, WithZeroInitABlockStartsAsItsShortcut) {
  TestContext worker;
  ResidualBlock block(8, 8, {.zero_init = true});
  FlatParameters parameters(worker.context, block.parameters(), block.buffers());
  const Tensor x = random_tensor({2, 4, 4, 8}, 1);
  const Variable input(worker.context, x);
  EXPECT_EQ(values(block(input).value()), values(relu(input).value()));
}

TEST(ResNet, RefusesOtherDepths) {
  EXPECT_EQ(error_of([] { ResNetPlan::imagenet(20); }),
            "model.depth = 20, expected 18, 34, 50, 101 or 152");
}

// ---------------------------------------------------------------- all

TEST(Models, AreMadeByNameFromTheirKeys) {
  Config config = Config::from_text("[model]\ndepth = 32\nhidden = [7, 5]\n", "test.toml");
  const auto resnet = ModelRegistry::instance().find("model", "resnet_cifar").make(config, kCifar);
  EXPECT_EQ(parameter_count(*resnet), 464'154);
  Config imagenet = Config::from_text("[model]\ndepth = 18\n", "test.toml");
  const auto large = ModelRegistry::instance().find("model", "resnet").make(imagenet, kImageNet);
  EXPECT_EQ(parameter_count(*large), 11'689'512);
  const auto mlp = ModelRegistry::instance().find("model", "mlp").make(config, kCifar);
  EXPECT_EQ(parameter_count(*mlp), 3072 * 7 + 7 + 7 * 5 + 5 + 5 * 10 + 10);
}

TEST(Mlp, RefusesSamplesThatDifferInLength) {
  EXPECT_EQ(error_of([] {
              Mlp({}, {.inputs = {{"spectrogram", {0, 161}}}, .classes = 10});
            }),
            "mlp: the data set's samples differ in length; expected images");
}

TEST(Mlp, HasNoMoreLayersThanACheckpointCanName) {
  const Facts facts{.inputs = {{"input", {2}}}, .classes = 2};
  Mlp most({.hidden = std::vector<int64_t>(1000, 1)}, facts);
  EXPECT_EQ(most.parameters().size(), 2002u);
  EXPECT_EQ(error_of([&] { Mlp({.hidden = std::vector<int64_t>(50'001, 1)}, facts); }),
            "mlp: model.hidden has 50001 layers, expected 1000 at most");
}

TEST(Mlp, LearnsOneBatch) {
  TestContext worker;
  Mlp model({.hidden = {16}}, {.inputs = {{"input", {4, 4, 3}}}, .classes = 10});
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  const Batch batch = image_batch(8, 4, 4, DType::f64);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const Step result = model.forward(worker.context, batch, {});
    last = values(result.loss.value())[0];
    if (step == 0) first = last;
    backward(result.loss);
    descend(parameters, 0.3);
  }
  EXPECT_NEAR(first, std::log(10.0), 0.5);  // about uniform at the start
  EXPECT_LT(last, 0.1);
}

}  // namespace
}  // namespace wisp
