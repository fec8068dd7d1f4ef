#include "core/io/metrics.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/json.h"
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
  std::error_code ignored;  // reading the file reports it
  if (!std::filesystem::exists(path, ignored)) return;
  InputLines lines(path);
  std::string kept;
  while (const std::optional<std::string_view> line = lines.next()) {
    try {
      const nlohmann::json row = parse_json(*line);
      const auto step = json_at<int64_t>(row, "step");
      if (keep(json_at<std::string>(row, "type"), step)) kept.append(*line) += "\n";
    } catch (const Error&) {
      break;
    }
  }
  write_file(path, kept);
}

}  // namespace wisp
