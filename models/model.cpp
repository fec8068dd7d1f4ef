#include "models/model.h"

#include <cmath>
#include <cstdio>

#include "core/ops.h"

namespace wisp {

std::string Metric::text(double value) const {
  if (std::isnan(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof text, percent ? "%.2f %%" : "%.2f", scale() * value);
  return text;
}

std::string pytorch_name(const std::string& name) {
  const size_t last = name.rfind('.') + 1;
  const std::string part = name.substr(last);
  return name.substr(0, last) + (part == "gamma" ? "weight" : part == "beta" ? "bias" : part);
}

std::vector<Metric> Model::metrics() const { return {{.name = "accuracy", .percent = true}}; }

void Model::measure(const Step& step, const Batch& batch, const Tensor& sums) const {
  count_correct(step.output, batch.targets, sums.reshape({2}));
}

std::unique_ptr<Model> make_model(const std::string& name, Config& config, const Facts& facts) {
  return ModelRegistry::instance().find("model (model.name)", name).make(config, facts);
}

}  // namespace wisp
