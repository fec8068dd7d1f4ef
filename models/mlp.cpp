#include "models/mlp.h"

#include <string>

namespace wisp {
namespace {

constexpr int64_t kMostHidden = 1000;  // names and states of more would not fit a checkpoint

}  // namespace

Mlp::Mlp(const MlpOptions& options, const Facts& facts)
    : Classifier(facts.classes, options.classifier) {
  WISP_CHECK(std::ssize(options.hidden) <= kMostHidden, "mlp: model.hidden has ",
             options.hidden.size(), " layers, expected ", kMostHidden, " at most");
  std::vector<int64_t> widths = options.hidden;
  widths.push_back(facts.classes);
  int64_t in = facts.inputs.at(0).sample.numel();
  WISP_CHECK(in > 0, "mlp: the data set's samples differ in length; expected images");
  for (const int64_t out : widths) {
    WISP_CHECK(out > 0, "mlp: a layer of ", out,
               " outputs (model.hidden), expected a positive number");
    const std::string name = concat("layer", layers_.size());
    child(name, layers_.emplace_back(in, out));
    in = out;
  }
}

Variable Mlp::logits(const Variable& input) const {
  const int64_t rows = input.shape()[0];
  Variable x = reshape(input, {rows, input.value().numel() / rows});
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    x = layers_[i](last ? widen(x) : x);
    if (!last) x = relu(x);
  }
  return x;
}

namespace {

std::unique_ptr<Model> make_mlp(Config& config, const Facts& facts) {
  MlpOptions options;
  config.bind("model.hidden", options.hidden, "width of each hidden layer");
  options.classifier = bind_classifier(config);
  return std::make_unique<Mlp>(options, facts);
}

const ModelRegistration mlp_registration("mlp", "multi-layer perceptron on flattened samples",
                                         make_mlp);

}  // namespace
}  // namespace wisp
