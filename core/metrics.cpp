#include "core/metrics.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace wisp {

std::string to_json(const MetricRow& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : row) {
    WISP_CHECK(!object.contains(name), "metrics: ", name, " is given twice in a row");
    std::visit([&object, key = name](const auto& v) { object[key] = v; }, value);
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace wisp
