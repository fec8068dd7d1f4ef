#include "models/resnet_cifar.h"

#include <string>

namespace wisp {
namespace {

constexpr int kWidths[] = {16, 32, 64};  // channels of the three stages

int in_channels(const ModelSetup& setup) {
  WISP_CHECK(setup.input.rank() == 3, "resnet_cifar: the data's samples have shape ", setup.input,
             ", expected images (H, W, C)");
  return static_cast<int>(setup.input[2]);
}

int64_t blocks_per_stage(int64_t depth) {
  WISP_CHECK(depth >= 8 && (depth - 2) % 6 == 0, "model.depth = ", depth,
             ", expected 6n + 2: 20, 32, 44, 56 or 110 (also 8, 14, …)");
  return (depth - 2) / 6;
}

}  // namespace

/// relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)).
class CifarResNet::Block final : public Module {
 public:
  Block(int in, int out, int64_t stride)
      : out_(out),
        stride_(stride),
        conv1_(in, out, 3, {.stride = stride, .pad = 1}),
        norm1_(out),
        conv2_(out, out, 3, {.pad = 1}),
        norm2_(out),
        same_shape_(in == out && stride == 1) {
    child("conv1", conv1_);
    child("norm1", norm1_);
    child("conv2", conv2_);
    child("norm2", norm2_);
  }

  Variable operator()(const Variable& x) const {
    const Variable shortcut = same_shape_ ? x : pad_channels(x, out_, stride_);
    const Variable inner = norm1_(conv1_(x), {.relu = true});
    return norm2_(conv2_(inner), {.relu = true, .residual = &shortcut});
  }

 private:
  int64_t out_, stride_;
  Conv2d conv1_;
  BatchNorm norm1_;
  Conv2d conv2_;
  BatchNorm norm2_;
  bool same_shape_;
};

CifarResNet::CifarResNet(const ResNetCifarOptions& options, const ModelSetup& setup)
    : label_smoothing_(options.label_smoothing),
      conv_(in_channels(setup), kWidths[0], 3, {.pad = 1}),
      norm_(kWidths[0]),
      classifier_(kWidths[2], setup.classes) {
  child("conv", conv_);
  child("norm", norm_);
  const int64_t count = blocks_per_stage(options.depth);
  int in = kWidths[0];
  for (int stage = 0; stage < 3; ++stage) {
    for (int64_t block = 0; block < count; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      blocks_.push_back(std::make_unique<Block>(in, kWidths[stage], stride));
      in = kWidths[stage];
      child("stage" + std::to_string(stage + 1) + ".block" + std::to_string(block),
            *blocks_.back());
    }
  }
  child("classifier", classifier_);
}

CifarResNet::~CifarResNet() = default;

Variable CifarResNet::features(const Variable& images) const {
  Variable x = norm_(conv_(images), {.relu = true});
  for (const auto& block : blocks_) x = (*block)(x);
  return global_avg_pool(x);
}

Step CifarResNet::forward(Context& context, const Batch& batch) {
  const Variable logits = classifier_(widen(features(Variable(context, batch.input))));
  return {cross_entropy(logits, batch.labels, label_smoothing_), logits};
}

namespace {

std::unique_ptr<Model> make(Config& config, const ModelSetup& setup) {
  ResNetCifarOptions options;
  config.bind("model.depth", options.depth, "layers: 6n + 2, as 20, 32, 44, 56, 110");
  config.bind("model.label_smoothing", options.label_smoothing,
              "share of the target spread over all classes");
  return std::make_unique<CifarResNet>(options, setup);
}

const Registration<Model, Config&, const ModelSetup&> registration(
    "resnet_cifar", "residual network for CIFAR, option A (He et al. 2016)", make);

}  // namespace
}  // namespace wisp
