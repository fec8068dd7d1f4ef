#include "apps/table/table_plan.h"

#include <algorithm>

#include "apps/setup/prepared.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

/// The window of a text's batch in tokens; 1 for other data.
int64_t window_of(const Prepared& run) {
  for (const ConfigKey& key : run.config().keys()) {
    if (key.name == "data.window") return std::stoll(key.value);
  }
  return 1;
}

int64_t steps_of_epoch(Prepared& run, int64_t samples) {
  const TrainOptions& options = run.options();
  if (samples > 0) {
    const int64_t steps = samples / options.batch, window = window_of(run);
    return (steps + window - 1) / window;  // a text's last window may be shorter
  }
  const auto& keys = run.config().keys();
  const bool without_place = std::any_of(keys.begin(), keys.end(), [](const ConfigKey& key) {
    return key.name == "data.path" && key.value == "\"\"";
  });
  if (without_place) return 0;
  run.load();
  return run.loader(Split::train, 0)->batches() / options.accumulate;
}

}  // namespace

std::vector<RowPlan> plan_rows(const TableFile& table, const TableScale& scale,
                               std::span<const std::string> overrides, const LoadConfig& load) {
  std::vector<RowPlan> plans;
  for (const TableRow& row : table.rows) {
    RowPlan& plan = plans.emplace_back();
    naming(concat("table ", table.name, ", row ", row.name), [&] {
      Prepared run(load(scale.config, overrides_of(row, scale, overrides)));
      const TrainOptions& options = run.options();
      plan.workers = options.workers;
      plan.batch = options.batch;
      plan.epochs = options.epochs;
      plan.steps = options.epochs * steps_of_epoch(run, scale.samples);
      if (options.max_steps > 0 && plan.steps > 0)
        plan.steps = std::min(plan.steps, options.max_steps);
    });
  }
  return plans;
}

Subject subject_of(const TableFile& table, const TableScale& scale, const LoadConfig& load) {
  Config config = load(scale.config, overrides_of(table.dense_row(), scale));
  Subject subject;
  int64_t depth = 0;
  config.bind("model.name", subject.model, "");
  config.bind("data.name", subject.data, "");
  config.bind("model.depth", depth, "");
  if (depth > 0) subject.model += concat(" ", depth);
  return subject;
}

}  // namespace wisp
