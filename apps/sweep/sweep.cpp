#include "apps/sweep/sweep.h"

#include <fmt/format.h>

#include "apps/run/run_record.h"
#include "apps/sweep/run_queue.h"
#include "apps/sweep/sweep_table.h"
#include "core/io/output_file.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

constexpr const char* kCsv = "sweep.csv";
constexpr const char* kMarkdown = "sweep.md";

/// Writes OUT/sweep.csv and OUT/sweep.md from the runs that have ended or diverged.
void write_tables(const std::string& out, std::span<const SweepAxis> axes,
                  std::span<const SweepRun> runs, const RunQueue& queue) {
  std::vector<SweepResult> results;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string directory = queue.directory(i);
    const std::optional<Summary> summary = summary_of(directory);
    const std::string diverged = divergence_of(directory, summary);
    if (!summary && diverged.empty()) continue;
    results.push_back(
        {runs[i], version_of(directory), RunFacts::read(directory), summary, diverged});
  }
  write_file(out + "/" + kCsv, sweep_csv(axes, results));
  write_file(out + "/" + kMarkdown, sweep_markdown(axes, results));
}

}  // namespace

int run_sweep(const SweepRequest& request, const LoadSwept& load) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : request.overrides) axes.push_back(parse_axis(text));
  const std::vector<SweepRun> runs = sweep_runs(axes, load);
  std::vector<QueuedRun> queued;
  for (const SweepRun& run : runs)
    queued.push_back({run.name, request.config, run.overrides, run.config});
  RunQueue queue({.program = request.program,
                  .out = request.out,
                  .files = {kCsv, kMarkdown},
                  .jobs = request.jobs},
                 queued);
  const int status = queue.run([&] { write_tables(request.out, axes, runs, queue); });
  write_progress(fmt::format("{} of {} runs have ended: {}/sweep.md, {}/sweep.csv\n",
                             queue.count_ended(), runs.size(), request.out, request.out));
  return status;
}

}  // namespace wisp
