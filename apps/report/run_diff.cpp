#include "apps/report/run_diff.h"

#include <fmt/format.h>

#include <cmath>

#include "apps/report/report.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct Column {
  const char* name;
  double StepRow::*value;
};

constexpr Column kCompared[] = {{"loss", &StepRow::loss},
                                {"metric", &StepRow::metric},
                                {"bytes_encoded", &StepRow::bytes_encoded},
                                {"bytes_sent", &StepRow::bytes_sent},
                                {"bytes_received", &StepRow::bytes_received}};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::optional<FirstDifference> difference(const StepRow& a, const StepRow& b,
                                          const std::string& metric) {
  for (const auto& [name, value] : kCompared) {
    if (!same(a.*value, b.*value))
      return FirstDifference{a.step, value == &StepRow::metric ? metric : name, a.*value, b.*value};
  }
  return {};
}

int64_t last_step(const RunRecord& run) {
  return run.metrics.steps.empty() ? 0 : run.metrics.steps.back().step;
}

std::string steps_text(const RunDiff& diff, const RunRecord& a, const RunRecord& b) {
  std::string text;
  if (diff.first) {
    text = fmt::format("{} differs first at step {}: {} and {}\n", visible(diff.first->what),
                       diff.first->step, diff.first->a, diff.first->b);
  } else if (diff.compared == 0) {
    text = "no step was recorded by both\n";
  } else {
    text = fmt::format("losses, metrics and bytes are equal in all {} steps recorded by both\n",
                       diff.compared);
  }
  if (diff.last_a != diff.last_b)
    text += fmt::format("{} goes on to step {}, {} to step {}\n", visible(a.name), diff.last_a,
                        visible(b.name), diff.last_b);
  return text;
}

}  // namespace

RunDiff compare_runs(const RunRecord& a, const RunRecord& b) {
  RunDiff diff;
  diff.config = config_differences({a, b});
  diff.version = a.version != b.version;
  diff.last_a = last_step(a);
  diff.last_b = last_step(b);
  auto other = b.metrics.steps.begin();
  for (const StepRow& row : a.metrics.steps) {
    while (other != b.metrics.steps.end() && other->step < row.step) ++other;
    if (other == b.metrics.steps.end()) break;
    if (other->step != row.step) continue;
    ++diff.compared;
    diff.first = difference(row, *other, a.facts.metric().name);
    if (diff.first) break;
  }
  return diff;
}

std::string diff_text(const RunRecord& a, const RunRecord& b) {
  const RunDiff diff = compare_runs(a, b);
  std::string text;
  for (const ConfigDifference& row : diff.config) {
    text += fmt::format("{}: {} and {}\n", visible(row.key), visible(row.values[0].value_or("-")),
                        visible(row.values[1].value_or("-")));
  }
  if (diff.config.empty()) text += "the configurations are equal\n";
  if (diff.version)
    text += fmt::format("program: {} and {}\n", visible(a.version), visible(b.version));
  if (a.numerics() != b.numerics())
    text += fmt::format("computed with: {}\n          and: {}\n", visible(a.numerics()),
                        visible(b.numerics()));
  text += steps_text(diff, a, b);
  text += '\n';
  return text + report_table(std::vector<RunRecord>{a, b});
}

}  // namespace wisp
