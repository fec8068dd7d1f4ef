// Fuzz target for metrics.jsonl as a resumed run finds it.
#include "core/io/metrics.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {

void fuzz(std::string_view input) {
  static const TempDir dir;
  const std::string path = dir.write("metrics.jsonl", std::string(input));
  const auto keep = [](const std::string& type, int64_t step) {
    return type != "epoch" || step < 3;
  };
  keep_metrics(path, keep);
  const std::string kept = read_text(path);
  keep_metrics(path, keep);
  if (read_text(path) != kept) throw Finding("metrics: rows that were kept are not kept again");
}

std::vector<std::string> fuzz_seeds() {
  std::string rows;
  for (int64_t step = 0; step < 4; ++step) {
    rows +=
        to_json({{"type", "step"}, {"step", step}, {"loss", 0.1}, {"note", "\"\n\u00e9"}}) + "\n";
    rows += to_json({{"type", "epoch"}, {"step", step}, {"best", true}}) + "\n";
  }
  return {rows, rows.substr(0, rows.size() - 10), ""};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
