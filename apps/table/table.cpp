#include "apps/table/table.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "apps/lab/bench_step.h"
#include "apps/report/figure_text.h"
#include "apps/run/run_record.h"
#include "apps/setup/prepared.h"
#include "apps/sweep/run_queue.h"
#include "apps/sweep/sweep_table.h"
#include "apps/table/table_page.h"
#include "apps/table/table_plot.h"
#include "apps/table/table_text.h"
#include "core/base/error.h"
#include "core/io/output_file.h"

namespace wisp {
namespace {

constexpr double kMeasureSeconds = 1.0;

/// The runs of a table at a scale: which row and seed each is of, and where.
struct TableRuns {
  const TableFile& table;
  const TableScale& scale;
  std::string out;                              // directory of the runs
  std::vector<std::pair<size_t, int64_t>> ids;  // row and seed of each run
  RunQueue queue;
};

std::string name_of(const TableFile& table, size_t row, int64_t seed) {
  return fmt::format("{}-s{}", table.rows[row].name, seed);
}

const TableScale& scale_of(const TableFile& table, const std::string& name) {
  return name.empty() ? table.scales.front() : table.scale(name);
}

/// The rows, dense first.
std::vector<size_t> order_of(const TableFile& table) {
  std::vector<size_t> order{static_cast<size_t>(&table.dense_row() - table.rows.data())};
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (r != order.front()) order.push_back(r);
  }
  return order;
}

TableRuns runs_of(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  const TableScale& scale = scale_of(table, request.scale);
  const std::string out = fmt::format("{}/{}-{}", request.out, table.name, scale.name);
  std::vector<std::pair<size_t, int64_t>> ids;
  std::vector<QueuedRun> queued;
  for (const int64_t seed : table.seeds) {
    for (const size_t r : order_of(table)) {
      std::vector<std::string> overrides = overrides_of(table.rows[r], scale);
      overrides.insert(overrides.end(), request.overrides.begin(), request.overrides.end());
      overrides.push_back(fmt::format("seed={}", seed));
      try {
        const std::string config = Prepared(load(scale.config, overrides)).config().resolved();
        queued.push_back({name_of(table, r, seed), scale.config, std::move(overrides), config});
      } catch (const Error& error) {
        throw Error(concat("table ", table.name, ", row ", table.rows[r].name, ": ", error.what()));
      }
      ids.emplace_back(r, seed);
    }
  }
  return {table, scale, out, std::move(ids),
          RunQueue({.program = request.program,
                    .out = out,
                    .jobs = request.jobs,
                    .niceness = request.niceness,
                    .places = {"data.path"},
                    .may_diverge = true},
                   std::move(queued))};
}

std::vector<TableResult> results_of(const TableRuns& runs) {
  std::vector<TableResult> results;
  for (size_t i = 0; i < runs.ids.size(); ++i) {
    if (runs.queue.has_ended(i))
      results.push_back(
          {runs.ids[i].first, runs.ids[i].second, RunRecord::read(runs.queue.directory(i))});
  }
  return results;
}

/// A row per run that has a summary.
std::string csv_of(const TableRuns& runs, const std::vector<TableResult>& results) {
  const std::vector<SweepAxis> axes{{"row", {}}, {"seed", {}}};
  std::vector<SweepResult> rows;
  for (const TableResult& result : results) {
    if (!result.run.summary) continue;  // it diverged
    const std::string& row = runs.table.rows[result.row].name;
    rows.push_back({{.name = result.run.name, .values = {row, std::to_string(result.seed)}},
                    result.run.version,
                    result.run.facts,
                    *result.run.summary});
  }
  return sweep_csv(axes, rows);
}

TableText write_table(const TableRuns& runs) {
  const std::vector<TableResult> results = results_of(runs);
  const TableText text = text_of(runs.table, runs.scale, results);
  const std::string plot = plot_of(runs.table, runs.scale, results);
  write_file(runs.out + "/results.csv", csv_of(runs, results));
  write_file(runs.out + "/table.md", "# " + text.title + "\n\n" + to_markdown(text));
  write_file(runs.out + "/table.html", table_page(text, plot));
  if (!plot.empty()) write_file(runs.out + "/table.svg", plot);
  return text;
}

void print(const TableText& text) { fmt::print("\n{}\n\n{}", text.title, to_markdown(text)); }

/// Milliseconds of a step here; NaN where the data is missing.
double measured_ms(const RowPlan& plan) {
  try {
    return bench_step(plan.config, "", kMeasureSeconds, 1).ms;
  } catch (const Error&) {
    return std::nan("");
  }
}

}  // namespace

int run_table(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  TableRuns runs = runs_of(table, request, load);
  const int status = runs.queue.run([&] { write_table(runs); });
  print(write_table(runs));
  fmt::print("\n{} of {} runs have ended: {}/table.md, table.html, results.csv\n",
             runs.queue.count_ended(), runs.ids.size(), runs.out);
  return status;
}

void show_table(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  const TableRuns runs = runs_of(table, request, load);
  print(text_of(table, runs.scale, results_of(runs)));
}

void plan_table(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  const TableScale& scale = scale_of(table, request.scale);
  const std::vector<RowPlan> plans = plan_rows(table, scale, request.overrides, load);
  TableText text{.title = table.title,
                 .headings = {"row", "epochs", "workers", "batch", "steps", "a step", "a run"}};
  double seconds = 0.0;
  for (size_t r = 0; r < plans.size(); ++r) {
    const RowPlan& plan = plans[r];
    const double ms = measured_ms(plan);
    const double run = plan.steps > 0 ? 1e-3 * ms * static_cast<double>(plan.steps) : std::nan("");
    seconds += run * static_cast<double>(table.seeds.size());
    text.rows.push_back({table.rows[r].name, std::to_string(plan.epochs),
                         std::to_string(plan.workers), std::to_string(plan.batch),
                         plan.steps > 0 ? std::to_string(plan.steps) : "-",
                         std::isnan(ms) ? "-" : fmt::format("{:.0f} ms", ms), seconds_text(run)});
  }
  text.remarks.push_back(
      fmt::format("Published: {}. Scale: {}. {}", table.source, scale.name, scale.changes));
  text.remarks.push_back(
      std::isnan(seconds)
          ? "What a run costs is not known where the data was not found (--data)."
          : fmt::format(
                "All {} runs: {} here, by a step measured for a second, without evaluation.",
                plans.size() * table.seeds.size(), seconds_text(seconds)));
  print(text);
}

void list_tables(const std::string& out) {
  TableText text{.title = "Tables",
                 .headings = {"table", "published", "scale", "rows x seeds", "done"}};
  for (const std::string& path : known_tables()) {
    const TableFile table = TableFile::read(path);
    for (const TableScale& scale : table.scales) {
      size_t done = 0;
      for (size_t r = 0; r < table.rows.size(); ++r) {
        for (const int64_t seed : table.seeds)
          done += std::filesystem::exists(fmt::format("{}/{}-{}/{}/summary.json", out, table.name,
                                                      scale.name, name_of(table, r, seed)));
      }
      text.rows.push_back({table.name, table.source, scale.name,
                           fmt::format("{} x {}", table.rows.size(), table.seeds.size()),
                           fmt::format("{}", done)});
    }
  }
  if (text.rows.empty()) text.remarks.push_back("No folder of tables was found.");
  print(text);
}

}  // namespace wisp
