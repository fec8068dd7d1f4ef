// Numbers of a run as JSON lines, one object each (metrics.jsonl). One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/io/output_file.h"

namespace wisp {

using MetricValue = std::variant<bool, int64_t, double, std::string>;
/// Names and values in the order they are printed. A value that is not finite becomes null.
using MetricRow = std::vector<std::pair<std::string, MetricValue>>;

/// The row as one JSON object on one line, numbers exact. Throws Error for a name used twice.
std::string to_json(const MetricRow& row);

/// Rewrites the file at `path` with the rows that `keep` wants, up to the first line that is no row
/// (of a process that was killed). A file that does not exist stays so. Throws Error.
void keep_metrics(const std::string& path,
                  const std::function<bool(const std::string& type, int64_t step)>& keep);

class MetricsWriter {
 public:
  /// Throws Error if the file cannot be opened.
  MetricsWriter(std::string path, OutputFile::Mode mode) : file_(std::move(path), mode) {}
  /// Readers see the whole line at once. Throws Error with the path and the cause (a full disk).
  void write(const MetricRow& row) { file_.write(to_json(row) + "\n"); }
  /// Returns when the rows are on the disk. Throws Error.
  void sync() { file_.sync(); }

 private:
  OutputFile file_;
};

}  // namespace wisp
