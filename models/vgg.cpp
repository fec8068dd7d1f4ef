#include "models/vgg.h"

#include <algorithm>
#include <map>

#include "layers/init.h"

namespace wisp {
namespace {

constexpr int64_t kVggLeastSide = 32;  // smaller images leave nothing for the last pool
constexpr int64_t kVggSide = 7;        // of the features behind the convolutions
constexpr int kVggLinearPlaces[] = {0, 3, 6};
constexpr Init kZero{Init::Kind::constant, 0.0};

std::unique_ptr<Model> make_vgg(Config& config, const Facts& facts) {
  int64_t depth = 16;
  config.bind("model.depth", depth, "number of layers: 11, 13, 16 or 19");
  VggPlan plan = VggPlan::of_depth(depth);
  config.bind("model.batch_norm", plan.batch_norm, "batch norm behind each convolution");
  config.bind("model.hidden_units", plan.hidden,
              "outputs of the two hidden layers; 0: only one linear layer without dropout, as for "
              "CIFAR-10");
  VggOptions options;
  config.bind("model.dropout", options.dropout, "dropout behind each hidden layer, in [0, 1)");
  options.classifier = bind_classifier(config);
  return std::make_unique<Vgg>(plan, facts, options);
}

const ModelRegistration vgg_registration(
    "vgg", "3 x 3 convolutions for ImageNet (Simonyan and Zisserman 2015)", make_vgg);

}  // namespace

VggPlan VggPlan::of_depth(int64_t depth) {
  const std::map<int64_t, std::vector<int64_t>> stages = {
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  const auto found = stages.find(depth);
  WISP_CHECK(found != stages.end(), "model.depth = ", depth, ", expected 11, 13, 16 or 19");
  return {.convolutions = found->second};
}

Vgg::Vgg(const VggPlan& plan, const Facts& facts, const VggOptions& options)
    : Classifier(facts.classes, options.classifier),
      plan_(plan),
      first_dropout_{options.dropout, 0},
      second_dropout_{options.dropout, 1} {
  WISP_CHECK(options.dropout >= 0.0 && options.dropout < 1.0, "vgg: a dropout of ", options.dropout,
             ", expected a number in [0, 1)");
  WISP_CHECK(plan.hidden >= 0, "vgg: hidden layers of ", plan.hidden,
             " outputs, expected 0 or more");
  const Shape& image = facts.image("vgg");
  WISP_CHECK(std::min(image[0], image[1]) >= kVggLeastSide, "vgg: images of ", image[0], " x ",
             image[1], ", expected at least ", kVggLeastSide, " x ", kVggLeastSide);
  constexpr size_t kDoublings = 3;
  auto in = static_cast<int>(image[2]);
  int place = 0;  // the next layer's number in torchvision's names; ReLUs and pools have one, too
  for (size_t stage = 0; stage < plan.convolutions.size(); ++stage) {
    const int out = plan.width << std::min(stage, kDoublings);
    for (int64_t i = 0; i < plan.convolutions[stage]; ++i) {
      child(concat("features.", place++),
            convolutions_.emplace_back(in, out, 3, ConvOptions{.pad = 1}, he_normal(3 * 3 * out),
                                       kZero));
      if (plan.batch_norm) child(concat("features.", place++), norms_.emplace_back(out));
      ++place;  // the ReLU
      in = out;
    }
    ++place;  // the pool
  }
  if (plan.hidden == 0) {
    add_linear("classifier", in, facts.classes);
    return;
  }
  int64_t width = in * kVggSide * kVggSide;
  for (const int linear_place : kVggLinearPlaces) {
    const bool last = linear_place == kVggLinearPlaces[2];
    add_linear(concat("classifier.", linear_place), width, last ? facts.classes : plan.hidden);
    width = plan.hidden;
  }
}

void Vgg::add_linear(const std::string& name, int64_t in, int64_t out) {
  child(name, linear_.emplace_back(in, out, Init{Init::Kind::normal, 0.01}, kZero));
}

Variable Vgg::logits(const Variable& images) const {
  Variable x = images;
  size_t i = 0;
  for (const int64_t convolutions : plan_.convolutions) {
    for (const size_t end = i + static_cast<size_t>(convolutions); i < end; ++i) {
      x = convolutions_[i](x);
      x = plan_.batch_norm ? norms_[i](x, {.relu = true}) : relu(x);
    }
    x = max_pool2d(x, 2);
  }
  if (plan_.hidden == 0) return linear_[0](widen(global_avg_pool(x)));
  x = flatten(adaptive_avg_pool(x, kVggSide));
  x = first_dropout_(relu(linear_[0](x)));
  x = second_dropout_(relu(linear_[1](x)));
  return linear_[2](widen(x));
}

}  // namespace wisp
