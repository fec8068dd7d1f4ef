#include "apps/sweep/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "apps/run/run_record.h"
#include "apps/sweep/children.h"
#include "apps/sweep/sweep_table.h"
#include "core/base/error.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/file_lock.h"
#include "core/io/output_file.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// The first key that differs, for a message.
std::string first_difference(const std::string& saved, const std::string& wanted) {
  RunRecord a, b;
  a.config = Config::from_text(saved, "saved").given_values();
  b.config = Config::from_text(wanted, "wanted").given_values();
  const auto rows = config_differences({a, b});
  if (rows.empty()) return "in its order";
  return fmt::format("{} is {} there, {} in this sweep", rows[0].key,
                     rows[0].values[0].value_or("not given"), rows[0].values[1].value_or("no key"));
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

class Sweep {
 public:
  Sweep(const SweepRequest& request, const std::function<Config(std::vector<std::string>)>& load)
      : request_(request) {
    for (const std::string& text : request.overrides) axes_.push_back(parse_axis(text));
    runs_ = sweep_runs(axes_, load);
    for (const SweepRun& run : runs_) refuse_another(run);
  }

  int run() {
    std::error_code failure;
    fs::create_directories(request_.out, failure);
    WISP_CHECK(!failure, "cannot make the sweep's directory ", request_.out, ": ",
               failure.message());
    const FileLock lock(request_.out + "/sweep.lock");
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    Children children;
    size_t next = 0;
    write_tables();
    for (;;) {
      const auto room = static_cast<size_t>(request_.jobs);
      while (next < runs_.size() && children.running() < room && !children.signalled())
        start(children, next++);
      if (children.running() == 0) break;
      const Children::Ended ended = children.wait();
      if (terminal && children.signalled() == SIGHUP) {
        // the terminal is gone, but the children are still saving
        WISP_CHECK(std::freopen("/dev/null", "w", stdout), "cannot open /dev/null");
      }
      end(ended, children.signalled() != 0);
    }
    tell_failures();
    const bool stopped = children.signalled() != 0;
    if (stopped) fmt::print("stopped; the same command goes on\n");
    fmt::print("{} of {} runs have ended: {}/sweep.md, {}/sweep.csv\n", finished(), runs_.size(),
               request_.out, request_.out);
    if (stopped) return 128 + children.signalled();
    return failures_.empty() ? 0 : 1;
  }

 private:
  std::string directory(const SweepRun& run) const { return request_.out + "/" + run.name; }
  bool has(const SweepRun& run, const char* file) const {
    return fs::exists(directory(run) + "/" + file);
  }
  size_t finished() const {
    size_t count = 0;
    for (const SweepRun& run : runs_) count += has(run, "summary.json");
    return count;
  }

  void refuse_another(const SweepRun& run) const {
    if (!has(run, "config.toml")) return;
    const std::string saved = text_of(directory(run) + "/config.toml");
    WISP_CHECK(saved == run.config, directory(run), " holds a run with another configuration (",
               first_difference(saved, run.config), "); choose another --out or remove it");
  }

  void start(Children& children, size_t index) {
    const SweepRun& run = runs_[index];
    const std::string position = fmt::format("[{}/{}] {}", index + 1, runs_.size(), run.name);
    if (has(run, "summary.json")) {
      fmt::print("{}: has ended before\n", position);
      return;
    }
    std::vector<std::string> command{request_.program, "train", request_.config};
    command.insert(command.end(), run.overrides.begin(), run.overrides.end());
    command.insert(command.end(), {"--out", directory(run)});
    const bool saved = !checkpoint_steps(directory(run) + "/checkpoints").empty();
    if (has(run, "config.toml")) command.push_back(saved ? "--resume" : "--overwrite");
    fmt::print("{}: {}\n", position, saved ? "goes on" : "starts");
    std::fflush(stdout);
    children.start(index, std::move(command), directory(run) + ".log");
  }

  void end(const Children::Ended& ended, bool stopped) {
    const SweepRun& run = runs_[ended.id];
    if (ended.status != 0) {
      if (!stopped) failures_.push_back(ended);
      fmt::print("{}: {} with status {}\n", run.name, stopped ? "stopped" : "failed", ended.status);
    } else {
      const Summary summary = Summary::from_json(directory(run) + "/summary.json");
      const RunFacts facts = RunFacts::read(directory(run));
      const Metric& metric = facts.metric();
      fmt::print("{}: {}", run.name, metric.text(summary.score_or_nan("test_" + metric.name)));
      if (facts.has_validation)
        fmt::print(", validation {}",
                   metric.text(summary.score_or_nan("validation_" + metric.name)));
      fmt::print("\n");
      write_tables();
    }
    std::fflush(stdout);
  }

  void write_tables() const {
    std::vector<SweepResult> results;
    for (const SweepRun& run : runs_) {
      if (!has(run, "summary.json")) continue;
      results.push_back({run, last_line(directory(run) + "/commit.txt"),
                         RunFacts::read(directory(run)),
                         Summary::from_json(directory(run) + "/summary.json")});
    }
    write_file(request_.out + "/sweep.csv", sweep_csv(axes_, results));
    write_file(request_.out + "/sweep.md", sweep_markdown(axes_, results));
  }

  void tell_failures() const {
    for (const Children::Ended& failure : failures_) {
      const std::string log = directory(runs_[failure.id]) + ".log";
      fmt::print("failed: {} (status {}): {}\n        see {}\n", runs_[failure.id].name,
                 failure.status, last_line(log), log);
    }
  }

  const SweepRequest& request_;
  std::vector<SweepAxis> axes_;
  std::vector<SweepRun> runs_;
  std::vector<Children::Ended> failures_;
};

}  // namespace

int run_sweep(const SweepRequest& request,
              const std::function<Config(std::vector<std::string>)>& load) {
  return Sweep(request, load).run();
}

}  // namespace wisp
