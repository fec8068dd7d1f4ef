#include "core/io/earlier_spans.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace wisp {

EarlierSpans read_earlier_spans(const std::string& path, int64_t step, int workers) {
  using Json = nlohmann::ordered_json;
  std::ifstream file(path);
  if (!file) return {};
  EarlierSpans earlier;
  std::string names;
  try {
    const Json trace = Json::parse(file);
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") {
        if (event.at("pid") > workers) names += event.dump() + ",\n";
      } else if (event.at("args").at("step") < step) {
        earlier.events += event.dump() + ",\n";
        earlier.end_us =
            std::max(earlier.end_us, event.at("ts").get<double>() + event.at("dur").get<double>());
      }
    }
  } catch (const Json::exception&) {
    return {};  // not a trace of this program: it will be overwritten
  }
  if (!earlier.events.empty()) earlier.events = names + earlier.events;
  return earlier;
}

}  // namespace wisp
