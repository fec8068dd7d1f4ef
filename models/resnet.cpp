#include "models/resnet.h"

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace wisp {
namespace {

/// One part of a parameter's path under torchvision's names. `shortcut`: the part before it is
/// "shortcut".
std::string exchange_part(const std::string& part, bool shortcut) {
  if (part == "conv") return shortcut ? "0" : "conv1";
  if (part == "norm") return shortcut ? "1" : "bn1";
  const std::pair<std::string_view, const char*> names[] = {
      {"classifier", "fc"}, {"gamma", "weight"}, {"beta", "bias"}, {"shortcut", "downsample"}};
  for (const auto& [ours, theirs] : names) {
    if (part == ours) return theirs;
  }
  const std::pair<std::string_view, const char*> numbered[] = {
      {"stage", "layer"}, {"block", ""}, {"norm", "bn"}};
  for (const auto& [ours, theirs] : numbered) {
    if (part.starts_with(ours)) return std::string(theirs).append(part, ours.size());
  }
  return part;
}

int out_channels(const ResNetPlan& plan) {
  const int last = plan.width << (plan.blocks.size() - 1);
  return plan.bottleneck ? ResidualBlock::kExpansion * last : last;
}

ResNetOptions bind_options(Config& config) {
  ResNetOptions options;
  options.classifier = bind_classifier(config);
  config.bind("model.zero_init_residual", options.zero_init_residual,
              "start the last norm of each block with scale 0 (Goyal et al. 2017, section 5.1)");
  return options;
}

std::unique_ptr<Model> make_cifar(Config& config, const Facts& facts) {
  int64_t depth = 20;
  config.bind("model.depth", depth, "number of layers: 6n + 2, such as 20, 32, 44, 56, 110");
  return std::make_unique<ResNet>(ResNetPlan::cifar(depth), facts, bind_options(config));
}

std::unique_ptr<Model> make_imagenet(Config& config, const Facts& facts) {
  int64_t depth = 50;
  config.bind("model.depth", depth, "number of layers: 18, 34, 50, 101 or 152");
  bool large_stem = true;
  config.bind_choice(
      "model.stem", large_stem, {{"7x7", true}, {"3x3", false}},
      "first convolution: 7x7 (with stride 2 and a max pool), or 3x3 for small pictures");
  ResNetPlan plan = ResNetPlan::imagenet(depth);
  plan.large_stem = large_stem;
  return std::make_unique<ResNet>(plan, facts, bind_options(config));
}

const ModelRegistration cifar_registration("resnet_cifar",
                                           "residual network for CIFAR, option A (He et al. 2016)",
                                           make_cifar);
const ModelRegistration imagenet_registration(
    "resnet", "residual network for ImageNet, v1.5 (He et al. 2016)", make_imagenet);

}  // namespace

ResNetPlan ResNetPlan::cifar(int64_t depth) {
  constexpr int64_t kDeepest = 6002;
  WISP_CHECK(8 <= depth && depth <= kDeepest && (depth - 2) % 6 == 0, "model.depth = ", depth,
             ", expected 6n + 2: 20, 32, 44, 56 or 110 (also 8, 14, … ", kDeepest, ")");
  const int64_t blocks = (depth - 2) / 6;
  return {.blocks = {blocks, blocks, blocks},
          .width = 16,
          .shortcut = Shortcut::pad,
          .large_stem = false};
}

ResNetPlan ResNetPlan::imagenet(int64_t depth) {
  const std::map<int64_t, std::vector<int64_t>> blocks = {{18, {2, 2, 2, 2}},
                                                          {34, {3, 4, 6, 3}},
                                                          {50, {3, 4, 6, 3}},
                                                          {101, {3, 4, 23, 3}},
                                                          {152, {3, 8, 36, 3}}};
  const auto found = blocks.find(depth);
  WISP_CHECK(found != blocks.end(), "model.depth = ", depth, ", expected 18, 34, 50, 101 or 152");
  return {.blocks = found->second, .bottleneck = depth >= 50};
}

ResNet::ResNet(const ResNetPlan& plan, const Facts& facts, const ResNetOptions& options)
    : Classifier(facts.classes, options.classifier),
      large_stem_(plan.large_stem),
      conv_(static_cast<int>(facts.image("resnet")[2]), plan.width, plan.large_stem ? 7 : 3,
            {.stride = plan.large_stem ? 2 : 1, .pad = plan.large_stem ? 3 : 1}),
      norm_(plan.width),
      classifier_(out_channels(plan), facts.classes) {
  child("conv", conv_);
  child("norm", norm_);
  int in = plan.width;
  for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    for (int64_t block = 0; block < plan.blocks[stage]; ++block) {
      blocks_.emplace_back(in, plan.width << stage,
                           ResidualBlockOptions{.stride = stage > 0 && block == 0 ? 2 : 1,
                                                .bottleneck = plan.bottleneck,
                                                .shortcut = plan.shortcut,
                                                .zero_init = options.zero_init_residual});
      in = blocks_.back().out_channels();
      child("stage" + std::to_string(stage + 1) + ".block" + std::to_string(block), blocks_.back());
    }
  }
  child("classifier", classifier_);
}

Variable ResNet::logits(const Variable& images) const {
  Variable x = norm_(conv_(images), {.relu = true});
  if (large_stem_) x = max_pool2d(x, 3, {.stride = 2, .pad = 1});
  for (const ResidualBlock& block : blocks_) x = block(x);
  return classifier_(widen(global_avg_pool(x)));
}

/// stage1.block0.shortcut.norm.gamma -> layer1.0.downsample.1.weight
std::vector<std::string> ResNet::exchange_names(const std::string& name) const {
  std::string result;
  bool shortcut = false;
  std::istringstream path(name);
  for (std::string part; std::getline(path, part, '.');) {
    if (!result.empty()) result += '.';
    result += exchange_part(part, shortcut);
    shortcut = part == "shortcut";
  }
  return {result};
}

}  // namespace wisp
