#include "models/alexnet.h"

#include <algorithm>

#include "layers/init.h"

namespace wisp {
namespace {

constexpr int64_t kAlexNetLeastSide = 63;  // smaller images leave nothing for the last pool
constexpr int64_t kAlexNetSide = 6;        // of the features behind the convolutions

/// `place` is the layer's number in torchvision's names.
struct ConvolutionPlan {
  int kernel, stride, pad, place;
  bool grouped, pooled;
};
constexpr ConvolutionPlan kConvolutions[] = {{11, 4, 2, 0, false, true},
                                             {5, 1, 2, 3, true, true},
                                             {3, 1, 1, 6, false, false},
                                             {3, 1, 1, 8, true, false},
                                             {3, 1, 1, 10, true, true}};
constexpr int kAlexNetLinearPlaces[] = {1, 4, 6};

/// The first weights of a layer.
Init weight_init(const AlexNetPlan& plan, int64_t fan_in) {
  if (plan.groups > 1) return {Init::Kind::normal, 0.01};
  return uniform_for(fan_in);
}

/// The first biases of a layer. `of_one` says whether the paper starts them at 1.
Init bias_init(const AlexNetPlan& plan, int64_t fan_in, bool of_one) {
  if (plan.groups > 1) return {Init::Kind::constant, of_one ? 1.0 : 0.0};
  return weight_init(plan, fan_in);
}

std::unique_ptr<Model> make_alexnet(Config& config, const Facts& facts) {
  int64_t groups = 1;
  config.bind("model.groups", groups,
              "1: torchvision's AlexNet; 2: the wider one of 2012, with groups");
  AlexNetOptions options;
  config.bind("model.dropout", options.dropout, "dropout before each hidden layer, in [0, 1)");
  options.classifier = bind_classifier(config);
  return std::make_unique<AlexNet>(AlexNetPlan::of_groups(groups), facts, options);
}

const ModelRegistration alexnet_registration(
    "alexnet", "convolutional network for ImageNet (Krizhevsky et al. 2012)", make_alexnet);

}  // namespace

AlexNetPlan AlexNetPlan::of_groups(int64_t groups) {
  WISP_CHECK(groups == 1 || groups == 2, "model.groups = ", groups, ", expected 1 or 2");
  if (groups == 1) return {};
  return {.channels = {96, 256, 384, 384, 256}, .groups = 2};
}

AlexNet::AlexNet(const AlexNetPlan& plan, const Facts& facts, const AlexNetOptions& options)
    : Classifier(facts.classes, options.classifier),
      first_dropout_{options.dropout, 0},
      second_dropout_{options.dropout, 1} {
  WISP_CHECK(options.dropout >= 0.0 && options.dropout < 1.0, "alexnet: a dropout of ",
             options.dropout, ", expected a number in [0, 1)");
  const Shape& image = facts.image("alexnet");
  WISP_CHECK(std::min(image[0], image[1]) >= kAlexNetLeastSide, "alexnet: images of ", image[0],
             " x ", image[1], ", expected at least ", kAlexNetLeastSide, " x ", kAlexNetLeastSide);
  auto in = static_cast<int>(image[2]);
  for (size_t i = 0; i < plan.channels.size(); ++i) {
    const auto& [kernel, stride, pad, place, grouped, pooled] = kConvolutions[i];
    const ConvOptions layer{
        .stride = stride, .pad = pad, .groups = grouped ? plan.groups : int64_t{1}};
    const int64_t fan_in = in / layer.groups * kernel * kernel;
    child(concat("features.", place),
          convolutions_.emplace_back(in, plan.channels[i], kernel, layer, weight_init(plan, fan_in),
                                     bias_init(plan, fan_in, grouped)));
    in = plan.channels[i];
  }
  int64_t width = in * kAlexNetSide * kAlexNetSide;
  for (size_t i = 0; i < std::size(kAlexNetLinearPlaces); ++i) {
    const bool last = i + 1 == std::size(kAlexNetLinearPlaces);
    child(concat("classifier.", kAlexNetLinearPlaces[i]),
          linear_.emplace_back(width, last ? facts.classes : plan.hidden, weight_init(plan, width),
                               bias_init(plan, width, !last)));
    width = plan.hidden;
  }
}

Variable AlexNet::logits(const Variable& images) const {
  Variable x = images;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    x = relu(convolutions_[i](x));
    if (kConvolutions[i].pooled) x = max_pool2d(x, 3, {.stride = 2});
  }
  x = flatten(adaptive_avg_pool(x, kAlexNetSide));
  x = relu(linear_[0](first_dropout_(x)));
  x = relu(linear_[1](second_dropout_(x)));
  return linear_[2](widen(x));
}

}  // namespace wisp
