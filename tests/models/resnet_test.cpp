#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "core/config.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"
#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

const ModelSetup kCifar{{32, 32, 3}, 10};

Batch image_batch(int64_t rows, int64_t side, DType dtype) {
  Tensor labels({rows}, DType::i32);
  for (int64_t i = 0; i < rows; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i * 3 % 10);
  return {.input = random_tensor({rows, side, side, 3}, 7, dtype),
          .labels = labels,
          .samples = sample_ids(rows)};
}

int64_t parameter_count(Module& module) {
  int64_t count = 0;
  for (const Parameter* parameter : module.parameters()) count += parameter->shape.numel();
  return count;
}

/// A model, its parameters and where they live.
struct Replica {
  Replica(int64_t depth, TestContextOptions options)
      : worker(options),
        model({.depth = depth}, kCifar),
        parameters(worker.context, model.parameters(), model.buffers()) {}

  TestContext worker;
  CifarResNet model;
  FlatParameters parameters;
};

TEST(ResNetCifar, HasThePapersParameterCounts) {
  const std::pair<int64_t, int64_t> counts[] = {
      {20, 269'722}, {32, 464'154}, {44, 658'586}, {56, 853'018}, {110, 1'727'962}};
  for (const auto& [depth, count] : counts) {
    CifarResNet model({.depth = depth}, kCifar);
    EXPECT_EQ(parameter_count(model), count) << depth;
  }
}

TEST(ResNetCifar, EveryDepthGivesLogitsAndALoss) {
  for (const int64_t depth : {20, 32, 44, 56, 110}) {
    Replica replica(depth, {.compute = DType::f32, .fastest = true});
    replica.worker.context.recording = false;
    // 4 x 4 images: the network does not depend on their size
    const Step step = replica.model.forward(replica.worker.context, image_batch(2, 4, DType::f32));
    EXPECT_EQ(step.logits.shape(), Shape({2, 10})) << depth;
    EXPECT_EQ(step.loss.shape().numel(), 1);
    EXPECT_TRUE(std::isfinite(values(step.loss.value())[0])) << depth;
  }
}

TEST(ResNetCifar, NamesItsParametersByPath) {
  Replica replica(20, {});
  std::vector<std::string> names;
  for (const Segment& segment : replica.parameters.segments()) {
    names.push_back(segment.name);
    EXPECT_EQ(segment.decay, segment.shape.rank() > 1) << segment.name;
  }
  ASSERT_EQ(names.size(), 59u);  // 19 convolutions, 19 norms of two, weight and bias at the end
  EXPECT_EQ(names.front(), "classifier.bias");
  EXPECT_EQ(names.back(), "conv.weight");
  EXPECT_NE(std::find(names.begin(), names.end(), "stage3.block2.norm2.gamma"), names.end());
  EXPECT_EQ(replica.parameters.buffers().size(), 38u);
}

TEST(ResNetCifar, EvaluationLeavesTheBuffersAlone) {
  Replica replica(20, {.compute = DType::f32});
  const auto buffers = [&] {
    std::vector<std::vector<double>> contents;
    for (const Buffer* buffer : replica.parameters.buffers())
      contents.push_back(values(buffer->value));
    return contents;
  };
  const Batch batch = image_batch(2, 8, DType::f32);
  const auto before = buffers();
  replica.worker.context.training = false;
  replica.model.forward(replica.worker.context, batch);
  EXPECT_EQ(buffers(), before);
  replica.worker.context.training = true;
  replica.model.forward(replica.worker.context, batch);
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
  Replica fast(20, {.compute = DType::f32, .fastest = true});
  Replica exact(20, {.compute = DType::f64});
  const Step fast_step = fast.model.forward(fast.worker.context, image_batch(4, 8, DType::f32));
  const Step step = exact.model.forward(exact.worker.context, image_batch(4, 8, DType::f64));
  // f32 has 6e-8; 20 layers with batch norm over 4 images magnify it by up to 100
  EXPECT_NEAR(values(fast_step.loss.value())[0], values(step.loss.value())[0], 1e-5);
  backward(fast_step.loss);
  backward(step.loss);
  for (const Segment& segment : exact.parameters.segments()) {
    const Segment& same =
        fast.parameters.segments()[static_cast<size_t>(segment.id)];  // offsets differ
    // measured: up to 8e-11; mostly ReLUs whose input rounds to the other side of 0
    EXPECT_LT(relative_square(FlatParameters::view(fast.parameters.grad(), same),
                              FlatParameters::view(exact.parameters.grad(), segment)),
              1e-9)
        << segment.name;
  }
}

TEST(ResNetCifar, ALateStreamGivesTheSameBits) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);  // as many as the late stream has
  const auto gradients = [](bool late) {
    Replica replica(20, {.compute = DType::f32, .late = late, .fastest = true});
    const Batch batch = image_batch(4, 8, DType::f32);  // lives until the stream is done
    const Step step = replica.model.forward(replica.worker.context, batch);
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
  EXPECT_NE(error_of([] { CifarResNet({.depth = 21}, kCifar); }).find("20, 32, 44, 56 or 110"),
            std::string::npos);
  EXPECT_NE(error_of([] { CifarResNet({.depth = 2}, kCifar); }).find("model.depth = 2"),
            std::string::npos);
  EXPECT_NE(error_of([] { CifarResNet({}, {{784}, 10}); }).find("(784)"), std::string::npos);
}

TEST(Models, AreMadeByNameFromTheirKeys) {
  Config config = Config::from_text("[model]\ndepth = 32\nhidden = [7, 5]\n", "test.toml");
  const auto resnet = ModelRegistry::instance().find("model", "resnet_cifar").make(config, kCifar);
  EXPECT_EQ(parameter_count(*resnet), 464'154);
  const auto mlp = ModelRegistry::instance().find("model", "mlp").make(config, kCifar);
  EXPECT_EQ(parameter_count(*mlp), 3072 * 7 + 7 + 7 * 5 + 5 + 5 * 10 + 10);
}

TEST(Mlp, LearnsOneBatch) {
  TestContext worker;
  Mlp model({.hidden = {16}}, {{4, 4, 3}, 10});
  FlatParameters parameters(worker.context, model.parameters(), model.buffers());
  const Batch batch = image_batch(8, 4, DType::f64);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const Step result = model.forward(worker.context, batch);
    last = values(result.loss.value())[0];
    if (step == 0) first = last;
    backward(result.loss);
    double* weight = parameters.weight().data<double>();
    const double* gradient = parameters.grad().data<double>();
    for (int64_t i = 0; i < parameters.numel(); ++i) weight[i] -= 0.3 * gradient[i];
  }
  EXPECT_NEAR(first, std::log(10.0), 0.5);  // about uniform at the start
  EXPECT_LT(last, 0.1);
}

}  // namespace
}  // namespace wisp
