#include "apps/table/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/report/figure_text.h"
#include "apps/run/run_record.h"
#include "apps/setup/prepared.h"
#include "apps/sweep/children.h"
#include "apps/sweep/run_queue.h"
#include "apps/sweep/sweep_table.h"
#include "apps/table/table_plot.h"
#include "apps/table/table_text.h"
#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/json.h"
#include "core/io/output_file.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

constexpr const char* kCsv = "results.csv";
constexpr const char* kMarkdown = "table.md";
constexpr const char* kPage = "table.html";
constexpr const char* kPlot = "table.svg";

/// The directory of the runs.
std::string directory_of(const std::string& out, const TableFile& table, const TableScale& scale) {
  return fmt::format("{}/{}-{}", out, table.name, scale.name);
}

/// The rows, dense first.
std::vector<size_t> order_of(const TableFile& table) {
  std::vector<size_t> order{table.dense_index()};
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (r != order.front()) order.push_back(r);
  }
  return order;
}

/// The table's runs, seed by seed, dense first.
std::vector<QueuedRun> queue_of(const TableFile& table, const TableScale& scale,
                                const TableRequest& request, const LoadConfig& load) {
  std::vector<QueuedRun> queued;
  for (const int64_t seed : table.seeds) {
    for (const size_t r : order_of(table)) {
      std::vector<std::string> overrides = overrides_of(table.rows[r], scale, request.overrides);
      for (const std::string& text : overrides)
        WISP_CHECK(!text.starts_with("seed="), "table ", table.name, ", row ", table.rows[r].name,
                   ": the override ", text, " is not for a row; give --seeds");
      overrides.push_back(fmt::format("seed={}", seed));
      const std::string config =
          naming(concat("table ", table.name, ", row ", table.rows[r].name),
                 [&] { return Prepared(load(scale.config, overrides)).config().resolved(); });
      queued.push_back({table.run_name(r, seed), scale.config, std::move(overrides), config});
    }
  }
  return queued;
}

/// The runs in `directory` that have ended.
std::vector<TableResult> results_in(const std::string& directory, const TableFile& table) {
  std::vector<TableResult> results;
  for (const int64_t seed : table.seeds) {
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const std::string run = directory + "/" + table.run_name(r, seed);
      if (has_ended(run)) results.push_back({r, seed, RunRecord::read(run)});
    }
  }
  return results;
}

/// A row per run that did not diverge.
std::string csv_of(const TableFile& table, const std::vector<TableResult>& results) {
  const std::vector<SweepAxis> axes{{"row", {}}, {"seed", {}}};
  std::vector<SweepResult> rows;
  for (const TableResult& result : results) {
    if (!result.run.summary || !result.run.diverged.empty()) continue;
    const std::string& row = table.rows[result.row].name;
    rows.push_back({{.name = result.run.name, .values = {row, std::to_string(result.seed)}},
                    result.run.version,
                    result.run.facts,
                    result.run.summary,
                    ""});
  }
  return sweep_csv(axes, rows);
}

/// Writes the files of the table from the runs in `directory`.
TableText write_table(const std::string& directory, const TableFile& table,
                      const TableScale& scale) {
  const std::vector<TableResult> results = results_in(directory, table);
  const TableText text = text_of(table, scale, results);
  const std::string plot = plot_of(table, scale, results);
  const auto write = [&](const char* name, const std::string& content) {
    write_file(directory + "/" + name, content);
  };
  write(kCsv, csv_of(table, results));
  write(kMarkdown, "# " + visible(text.title) + "\n\n" + to_markdown(text));
  write(kPage, to_html(text, plot));
  if (!plot.empty()) write(kPlot, plot);
  return text;
}

/// The time in what `wisp bench step --json` prints; none in other text.
std::optional<double> ms_in(const std::string& said) {
  try {
    return json_at<double>(parse_json(said), "ms");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Measures steps, each in a process of its own, because a row may need more memory than there is.
class StepMeter {
 public:
  explicit StepMeter(const TableRequest& request) : request_(request) {
    const int file = mkstemp(log_.data());
    WISP_CHECK(file >= 0, log_, ": cannot be created: ", std::strerror(errno));
    close(file);
  }
  ~StepMeter() { unlink(log_.c_str()); }

  /// Milliseconds of a step here; NaN, and a sentence on the reason, if it cannot be measured.
  double ms(const TableRow& row, const TableScale& scale, std::string& failure) {
    std::filesystem::resize_file(log_, 0);
    std::vector<std::string> command{request_.program, "bench", "step", scale.config};
    const std::vector<std::string> overrides = overrides_of(row, scale, request_.overrides);
    command.insert(command.end(), overrides.begin(), overrides.end());
    command.insert(command.end(), {"--seconds", "1", "--steps", "1", "--json"});
    children_.start(0, std::move(command), log_);
    const Children::Ended ended = children_.wait();
    std::string said = last_line(log_);
    if (const std::optional<double> ms = ms_in(said); ended.status == 0 && ms) return *ms;
    if (said.starts_with("wisp: ")) said.erase(0, 6);
    failure = concat("Not measured: ", ended.status == 1 ? said : ended.how());
    return std::nan("");
  }
  /// The exit status: 0, or 128 + the signal after which nothing should be measured.
  int status() const { return children_.signalled() == 0 ? 0 : 128 + children_.signalled(); }

 private:
  const TableRequest& request_;
  std::string log_ = (std::filesystem::temp_directory_path() / "wisp_step_XXXXXX").string();
  Children children_;
};

/// Model and data of a scale, as its configuration names them.
struct Subject {
  std::string model;  // with its depth, if that is given: "resnet_cifar 20"
  std::string data;
};

Subject subject_of(const TableFile& table, const TableScale& scale, const LoadConfig& load) {
  Config config = load(scale.config, overrides_of(table.dense_row(), scale));
  std::string model, data;
  int64_t depth = 0;
  config.bind("model.name", model, "");
  config.bind("data.name", data, "");
  config.bind("model.depth", depth, "");
  return {depth > 0 ? concat(model, " ", depth) : model, data};
}

/// Seconds that all runs of a scale take here if every row takes the dense row's time; NaN, and a
/// remark, if it cannot be measured.
double cost_of(const TableFile& table, const TableScale& scale, const TableRequest& request,
               const LoadConfig& load, StepMeter& meter, std::vector<std::string>& remarks) {
  std::string failure;
  double seconds;
  try {
    const std::vector<RowPlan> plans = plan_rows(table, scale, request.overrides, load);
    int64_t steps = 0;
    for (const RowPlan& plan : plans) steps += plan.steps;
    seconds = 1e-3 * meter.ms(table.dense_row(), scale, failure) * static_cast<double>(steps) *
              static_cast<double>(table.seeds.size());
  } catch (const Error& error) {
    failure = error.what();
    seconds = std::nan("");
  }
  if (!failure.empty()) remarks.push_back(concat(table.name, ", ", scale.name, ": ", failure));
  return seconds;
}

std::string printed(const TableText& text) {
  return fmt::format("\n{}\n\n{}", visible(text.title), to_markdown(text));
}

void print(const TableText& text) { write_out(printed(text)); }

}  // namespace

int run_table(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  const TableScale& scale = table.scale(request.scale);
  const std::string directory = directory_of(request.out, table, scale);
  RunQueue queue({.program = request.program,
                  .out = directory,
                  .files = {kCsv, kMarkdown, kPage, kPlot},
                  .jobs = request.jobs,
                  .niceness = request.niceness,
                  .places = {"data.path"},
                  .may_diverge = true,
                  .one_program = true},
                 queue_of(table, scale, request, load));
  const int status = queue.run([&] { write_table(directory, table, scale); });
  write_progress(printed(write_table(directory, table, scale)));
  write_progress(fmt::format("\n{} of {} runs have ended: {}/table.md, table.html, results.csv\n",
                             queue.count_ended(), queue.runs().size(), directory));
  return status;
}

void show_table(const TableFile& table, const TableRequest& request) {
  const TableScale& scale = table.scale(request.scale);
  print(text_of(table, scale, results_in(directory_of(request.out, table, scale), table)));
}

int plan_table(const TableFile& table, const TableRequest& request, const LoadConfig& load) {
  const TableScale& scale = table.scale(request.scale);
  StepMeter meter(request);
  const std::vector<RowPlan> plans = plan_rows(table, scale, request.overrides, load);
  TableText text{.title = table.title,
                 .headings = {"row", "epochs", "workers", "batch", "steps", "a step", "a run"}};
  text.remarks.push_back(provenance_of(table, scale));
  double seconds = 0.0;
  for (size_t r = 0; r < plans.size() && meter.status() == 0; ++r) {
    const RowPlan& plan = plans[r];
    std::string failure;
    const double ms = meter.ms(table.rows[r], scale, failure);
    if (!failure.empty() && text.remarks.back() != failure) text.remarks.push_back(failure);
    const double run = plan.steps > 0 ? 1e-3 * ms * static_cast<double>(plan.steps) : std::nan("");
    seconds += run * static_cast<double>(table.seeds.size());
    text.rows.push_back({table.rows[r].name, std::to_string(plan.epochs),
                         std::to_string(plan.workers), std::to_string(plan.batch),
                         plan.steps > 0 ? std::to_string(plan.steps) : "-",
                         std::isnan(ms) ? "-" : fmt::format("{:.0f} ms", ms), seconds_text(run)});
  }
  if (!std::isnan(seconds))
    text.remarks.push_back(
        fmt::format("All {} runs: {} here, by a step measured for a second, without evaluation.",
                    plans.size() * table.seeds.size(), seconds_text(seconds)));
  print(text);
  return meter.status();
}

int list_tables(const TableRequest& request, bool measure, const LoadConfig& load) {
  TableText text{.title = "Tables",
                 .headings = {"table", "published", "model", "data", "scale", "cost", "runs done"}};
  std::optional<StepMeter> meter;
  if (measure) meter.emplace(request);
  const std::vector<std::string> paths = known_tables();
  for (const std::string& path : paths) {
    TableFile table = TableFile::read(path);
    table.take_seeds(request.seeds);
    for (const TableScale& scale : table.scales) {
      if (!request.scale.empty() && request.scale != scale.name) continue;
      if (meter && meter->status() != 0) break;
      const std::string directory = directory_of(request.out, table, scale);
      size_t done = 0;
      for (size_t r = 0; r < table.rows.size(); ++r) {
        for (const int64_t seed : table.seeds)
          done += has_ended(directory + "/" + table.run_name(r, seed));
      }
      const auto [model, data] = subject_of(table, scale, load);
      const double seconds =
          meter ? cost_of(table, scale, request, load, *meter, text.remarks) : std::nan("");
      text.rows.push_back({table.name, table.source, model, data, scale.name, seconds_text(seconds),
                           fmt::format("{} of {}", done, table.rows.size() * table.seeds.size())});
    }
  }
  if (paths.empty()) text.remarks.push_back("No folder of tables was found.");
  text.remarks.push_back(
      measure ? "Cost: of all runs here, by a step of the dense row measured for a second, without "
                "evaluation. `wisp table NAME --dry` measures each row."
              : "`wisp table --dry --data DIR` measures what they cost here.");
  print(text);
  return meter ? meter->status() : 0;
}

}  // namespace wisp
