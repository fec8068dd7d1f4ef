// The numbers of a run as JSON lines, one object per line (metrics.jsonl). One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace wisp {

using MetricValue = std::variant<bool, int64_t, double, std::string>;
/// Names and values in the order of printing. A value that is not finite becomes null.
using MetricRow = std::vector<std::pair<std::string, MetricValue>>;

/// The row as one JSON object on one line, numbers exact. Throws Error for a name used twice.
std::string to_json(const MetricRow& row);

/// Rewrites the file at `path` with the rows for which `keep` is true. It stops at the first line
/// that is not a row, which a killed process left. Does nothing if the file does not exist. Throws
/// Error.
void keep_metrics(const std::string& path,
                  const std::function<bool(const std::string& type, int64_t step)>& keep);

}  // namespace wisp
