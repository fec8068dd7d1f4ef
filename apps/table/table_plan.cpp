#include "apps/table/table_plan.h"

#include <algorithm>

#include "apps/setup/prepared.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

/// The value of a key, as TOML; empty if nothing binds it.
std::string value_of(const Prepared& run, const std::string& key) {
  const auto& keys = run.config().keys();
  const auto found = std::ranges::find(keys, key, &ConfigKey::name);
  return found == keys.end() ? "" : found->value;
}

int64_t steps_of_epoch(Prepared& run, int64_t samples) {
  const TrainOptions& options = run.options();
  if (samples > 0) {
    const std::string window_text = value_of(run, "data.window");  // tokens; only texts have it
    const int64_t window = window_text.empty() ? 1 : std::stoll(window_text);
    return (samples / options.batch + window - 1) / window;  // the last window may be shorter
  }
  if (value_of(run, "data.path") == "\"\"") return 0;
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

}  // namespace wisp
