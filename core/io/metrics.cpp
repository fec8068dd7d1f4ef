#include "core/io/metrics.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/io/output_file.h"

namespace wisp {

std::string to_json(const MetricRow& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : row) {
    WISP_CHECK(!object.contains(name), "metrics: ", name, " is given twice in a row");
    std::visit([&object, key = name](const auto& v) { object[key] = v; }, value);
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void keep_metrics(const std::string& path,
                  const std::function<bool(const std::string& type, int64_t step)>& keep) {
  std::ifstream file(path);
  if (!file) return;
  std::string kept, line;
  while (std::getline(file, line)) {
    try {
      const nlohmann::json row = nlohmann::json::parse(line);
      if (!row.at("step").is_number_integer()) break;
      if (keep(row.at("type"), row.at("step"))) kept += line + "\n";
    } catch (const nlohmann::json::exception&) {
      break;
    }
  }
  write_file(path, kept);
}

}  // namespace wisp
