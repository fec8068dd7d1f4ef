#include "apps/run/summary.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace wisp {
namespace {

template <class T>
void put(nlohmann::ordered_json& object, const char* key, const T* value) {
  object[key] = *value;
}

void put(nlohmann::ordered_json& object, const char* key, const std::optional<double>* value) {
  if (*value) object[key] = **value;
}

template <class T>
void get(const nlohmann::json& object, const char* key, T* value) {
  object.at(key).get_to(*value);
}

void get(const nlohmann::json& object, const char* key, std::optional<double>* value) {
  if (object.contains(key)) *value = object.at(key).get<double>();
}

}  // namespace

std::vector<std::pair<const char*, Summary::Field>> Summary::fields() {
  return {{"test_accuracy", &test_accuracy},
          {"validation_accuracy", &validation_accuracy},
          {"images_per_s", &images_per_s},
          {"steps", &steps},
          {"skipped", &skipped},
          {"bytes_raw", &bytes_raw},
          {"bytes_encoded", &bytes_encoded},
          {"bytes_sent", &bytes_sent},
          {"bytes_received", &bytes_received},
          {"reduction_encoded", &reduction_encoded},
          {"reduction_sent", &reduction_sent},
          {"loader_ms", &times.loader_ms},
          {"compute_ms", &times.compute_ms},
          {"encode_ms", &times.encode_ms},
          {"wait_ms", &times.wait_ms},
          {"wire_ms", &times.wire_ms},
          {"decode_ms", &times.decode_ms}};
}

std::string Summary::json() const {
  nlohmann::ordered_json object;
  Summary copy = *this;
  for (const auto& [key, value] : copy.fields()) {
    std::visit([&, name = key](const auto* field) { put(object, name, field); }, value);
  }
  object["bottleneck"] = bottleneck_line(times);
  return object.dump(2) + "\n";
}

Summary Summary::from_json(const std::string& path) {
  std::ifstream file(path);
  WISP_CHECK(file, "cannot read ", path, ": is its run finished?");
  try {
    const nlohmann::json object = nlohmann::json::parse(file);
    Summary summary;
    for (const auto& [key, value] : summary.fields())
      std::visit([&, name = key](auto* field) { get(object, name, field); }, value);
    return summary;
  } catch (const nlohmann::json::exception& error) {
    throw Error(path + " is no summary: " + error.what());
  }
}

}  // namespace wisp
