#include "apps/sweep/run_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/run/run_files.h"
#include "apps/run/run_record.h"
#include "apps/setup/prepared.h"
#include "apps/version.h"
#include "core/base/core_share.h"
#include "core/base/error.h"
#include "core/base/stopping_signals.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/config.h"
#include "core/io/file_lock.h"
#include "core/io/input_file.h"
#include "core/io/output_streams.h"
#include "core/io/toml_limits.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// A saved configuration as the present program writes it, which may have fewer keys. The text
/// itself if this program refuses it.
std::string resolved_anew(const std::string& saved) {
  try {
    return Prepared(Config::from_text(saved, "saved")).config().resolved();
  } catch (const Error&) {
    return saved;
  }
}

bool ended_by_divergence(const std::string& directory) {
  return !summary_of(directory) && !divergence_of(directory, std::nullopt).empty();
}

/// Whether a run that was asked to stop ends with this status.
bool is_stop(int status) { return std::ranges::count(stopping_signals(), status - 128) > 0; }

}  // namespace

RunQueue::RunQueue(QueueOptions options, std::vector<QueuedRun> runs)
    : options_(std::move(options)), runs_(std::move(runs)), log_begins_(runs_.size()) {
  refuse_others();
}

int RunQueue::run(const std::function<void()>& ended) {
  std::error_code failure;
  fs::create_directories(options_.out, failure);
  WISP_CHECK(!failure, "cannot make the directory of the runs, ", options_.out, ": ",
             failure.message());
  const std::string lock_path = options_.out + "/runs.lock";
  for (const std::string& name : options_.files) {
    const std::string path = options_.out + "/" + name;
    WISP_CHECK(fs::exists(lock_path) || !fs::is_regular_file(path), path,
               " is there, and no sweep or table wrote it (there is no runs.lock); choose another "
               "--out or move it away");
  }
  const FileLock lock(lock_path);
  refuse_others();  // again: another queue may have made runs meanwhile
  Children children(options_.niceness);
  size_t next = 0;
  ended();
  for (;;) {
    const auto room = static_cast<size_t>(options_.jobs);
    while (next < runs_.size() && children.running() < room && !children.signalled())
      start(children, next++);
    if (children.running() == 0) break;
    const Children::Ended child = children.wait();
    end(child, children.signalled() != 0);
    ended();
  }
  tell_failures();
  if (children.signalled() != 0) {
    write_progress("stopped; the same command goes on\n");
    return 128 + children.signalled();
  }
  return failures_.empty() ? 0 : 1;
}

bool has_ended(const std::string& directory) {
  const std::optional<Summary> summary = summary_of(directory);
  return summary || !divergence_of(directory, summary).empty();
}

bool RunQueue::has_ended(size_t index) const {
  return options_.may_diverge ? wisp::has_ended(directory(index))
                              : summary_of(directory(index)).has_value();
}

size_t RunQueue::count_ended() const {
  size_t count = 0;
  for (size_t i = 0; i < runs_.size(); ++i) count += has_ended(i);
  return count;
}

void RunQueue::refuse_others() const {
  for (size_t i = 0; i < runs_.size(); ++i) refuse_another(i);
}

void RunQueue::refuse_another(size_t index) const {
  const std::string path = directory(index) + "/config.toml";
  if (!is_there(path)) return;
  const std::string saved = naming(path, [&] { return read_whole_file(path, kMostConfigBytes); });
  if (saved == runs_[index].config) return;
  RunRecord there, here;
  there.config = Config::from_text(resolved_anew(saved), "saved").given_values();
  here.config = Config::from_text(runs_[index].config, "wanted").given_values();
  for (const auto& [key, values] : config_differences({there, here})) {
    WISP_CHECK(std::ranges::count(options_.places, key) > 0, directory(index),
               " holds a run with another configuration (", key, " is ",
               values[0].value_or("not given"), " there, ", values[1].value_or("no key"),
               " here); choose another --out or remove it");
  }
}

void RunQueue::start(Children& children, size_t index) {
  const QueuedRun& run = runs_[index];
  const std::string position = fmt::format("[{}/{}] {}", index + 1, runs_.size(), run.name);
  if (has_ended(index)) {
    write_progress(fmt::format("{}: has ended before\n", position));
    return;
  }
  std::vector<std::string> command{options_.program, "train", run.config_path};
  command.insert(command.end(), run.overrides.begin(), run.overrides.end());
  command.insert(command.end(), {"--out", directory(index)});
  const bool another = options_.one_program && version_of(directory(index)) != program_version();
  const bool saved = !another && !checkpoint_steps(directory(index) + "/checkpoints").empty();
  if (holds_run(directory(index))) command.push_back(another ? "--overwrite" : "--resume");
  write_progress(fmt::format("{}: {}\n", position, saved ? "goes on" : "starts"));
  const std::string log = directory(index) + ".log";
  std::error_code none_yet;
  const auto bytes = fs::file_size(log, none_yet);
  log_begins_[index] = none_yet ? 0 : static_cast<int64_t>(bytes);
  children.start(index, std::move(command), log, variable_of(run));
}

/// Shares the cores among the runs at a time: the variable limits runs with threads = 0.
std::string RunQueue::variable_of(const QueuedRun& run) const {
  const auto at_once = static_cast<int>(std::min<size_t>(options_.jobs, runs_.size()));
  if (at_once == 1) return "";
  int workers = 1;
  Config::from_text(run.config, "wanted").bind("workers", workers, "");
  return concat("OMP_NUM_THREADS=", core_share(CoreLimits::here(), at_once * workers).threads);
}

void RunQueue::end(const Children::Ended& ended, bool stopped) {
  const QueuedRun& run = runs_[ended.id];
  if (ended.status != 0 && options_.may_diverge && ended_by_divergence(directory(ended.id))) {
    write_progress(fmt::format("{}: diverged\n", run.name));
  } else if (ended.status != 0 && stopped && is_stop(ended.status)) {
    write_progress(fmt::format("{}: stopped with status {}\n", run.name, ended.status));
  } else if (ended.status != 0) {
    failures_.push_back(ended);
    write_progress(
        fmt::format("{}: {}{}\n", run.name, ended.killed ? "" : "failed with ", ended.how()));
  } else {
    const Summary summary = Summary::from_json(directory(ended.id) + "/summary.json");
    const RunFacts facts = RunFacts::read(directory(ended.id));
    const Metric& metric = facts.metric();
    write_progress(
        fmt::format("{}: {}", run.name, metric.text(summary.score_or_nan("test_" + metric.name))));
    if (!summary.diverged.empty()) write_progress(fmt::format(", diverged: {}", summary.diverged));
    if (facts.has_validation)
      write_progress(fmt::format(", validation {}",
                                 metric.text(summary.score_or_nan("validation_" + metric.name))));
    write_progress("\n");
  }
}

void RunQueue::tell_failures() const {
  for (const Children::Ended& failure : failures_) {
    const std::string log = directory(failure.id) + ".log";
    // a run that was killed did not write why
    const std::string why = failure.killed ? "" : last_line(log, log_begins_[failure.id]);
    write_progress(fmt::format("failed: {} ({}){}{}\n        see {}\n", runs_[failure.id].name,
                               failure.how(), why.empty() ? "" : ": ", why, log));
  }
}

}  // namespace wisp
