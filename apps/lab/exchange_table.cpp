#include "apps/lab/exchange_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/io/visible_text.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {
namespace {

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::none:
      return "none";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_gather:
      return "all_gather";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::pair:
      return "pair";
    case Collective::neighbours:
      return "neighbours";
  }
  throw Error("not a collective");
}

/// "dense", with the reason in brackets, or "compressed"; plain weights are "exact".
std::string path_of(const LayerPlan& layer) {
  const std::string plain = layer.exact ? "exact" : "dense";
  if (layer.method.empty()) return plain;
  if (layer.path == UnitPath::warm_up) return plain + " (warm-up)";
  if (layer.path == UnitPath::more_than_dense) return plain + " (guard)";
  return layer.exact ? plain : "compressed";
}

/// The collectives of an exchanging step, with repeats counted: "all_reduce x 2".
std::string rounds_of(const LayerPlan& layer, int64_t period) {
  if (layer.rounds.empty()) return "all_reduce";
  std::string text;
  for (size_t i = 0; i < layer.rounds.size();) {
    size_t end = i;
    while (end < layer.rounds.size() && layer.rounds[end] == layer.rounds[i]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(layer.rounds[i]));
    if (end - i > 1) text += fmt::format(" x {}", end - i);
    i = end;
  }
  if (period > 1) text += fmt::format(" every {} steps", period);
  return text;
}

/// The text ", 128512 on average" if steps differ; else empty.
std::string mean_of(const PhasePlan& phase) {
  const bool differ = phase.bytes_most > phase.bytes_sent + 0.5;
  return differ ? fmt::format(", {:.0f} on average", phase.bytes_sent) : "";
}

}  // namespace

std::string exchange_table(const ExchangePlan& plan, int workers) {
  size_t name = 5, method = 12;
  for (const LayerPlan& layer : plan.layers) {
    name = std::max(name, layer.name.size());
    method = std::max(method, layer.method.size());
  }
  std::string text = fmt::format(
      "{:<{}}  {:<10} {:<18} {:>10}  {:<{}} {:>5} {:>6}  {:<16} {:<24} "
      "{:>12} {:>9} {:>11}\n",
      "layer", name, "kind", "shape", "elements", "method", method, "unit", "bucket", "path",
      "collectives", "bytes sent", "reduction", "state bytes");
  for (const LayerPlan& layer : plan.layers)
    text += fmt::format(
        "{:<{}}  {:<10} {:<18} {:>10}  {:<{}} {:>5} {:>6}  {:<16} {:<24} {:>12.0f} "
        "{:>8.1f}x {:>11}\n",
        layer.name, name, layer.kind.empty() ? "-" : layer.kind, layer.shape.str(), layer.numel,
        layer.method.empty() ? "-" : layer.method, method,
        layer.unit < 0 ? "-" : std::to_string(layer.unit), layer.bucket, path_of(layer),
        rounds_of(layer, plan.period), layer.bytes_sent,
        reduction(layer.bytes_dense, layer.bytes_sent), layer.state_bytes);
  text += "\n";
  for (const PhasePlan& phase : plan.phases)
    text += fmt::format(
        "from epoch {:.4g}, ratio {:.4g}: {} units, {} of them {} in warm-up, {} by the guard; "
        "at most {:.0f} bytes sent a step by each of {} workers{}, dense {:.0f}: {:.1f}x less\n",
        phase.epoch, phase.ratio, phase.units, phase.warm_up,
        plan.neighbourhood ? "exact" : "dense", phase.more_than_dense, phase.bytes_most, workers,
        mean_of(phase), phase.bytes_dense, reduction(phase.bytes_dense, phase.bytes_sent));
  text += fmt::format("state of the methods: {} bytes on each worker\n", plan.state_bytes);
  for (const std::string& remark : plan.remarks) text += visible(remark) + "\n";
  return text;
}

std::string exchange_json(const ExchangePlan& plan, int workers) {
  nlohmann::ordered_json json = {{"workers", workers}, {"state_bytes", plan.state_bytes}};
  if (plan.neighbourhood) {
    json["degree"] = plan.neighbourhood->degree;
    json["spectral_gap"] = plan.neighbourhood->spectral_gap;
  }
  json["period"] = plan.period;
  json["layers"] = nlohmann::ordered_json::array();
  for (const LayerPlan& layer : plan.layers) {
    std::vector<std::string> rounds;
    for (const Collective kind : layer.rounds) rounds.emplace_back(name_of(kind));
    json["layers"].push_back(
        {{"name", layer.name},
         {"kind", layer.kind},
         {"shape", layer.shape},
         {"numel", layer.numel},
         {"method", layer.method.empty() ? "none" : layer.method},
         {"path", path_of(layer)},
         {"unit", layer.unit},
         {"bucket", layer.bucket},
         {"collectives", rounds.empty() ? std::vector<std::string>{"all_reduce"} : rounds},
         {"bytes_sent", layer.bytes_sent},
         {"bytes_dense", layer.bytes_dense},
         {"state_bytes", layer.state_bytes}});
  }
  json["phases"] = nlohmann::ordered_json::array();
  for (const PhasePlan& phase : plan.phases)
    json["phases"].push_back({{"epoch", phase.epoch},
                              {"ratio", phase.ratio},
                              {"units", phase.units},
                              {"warm_up", phase.warm_up},
                              {"more_than_dense", phase.more_than_dense},
                              {"bytes_sent", phase.bytes_sent},
                              {"bytes_most", phase.bytes_most},
                              {"bytes_dense", phase.bytes_dense}});
  json["remarks"] = plan.remarks;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace wisp
