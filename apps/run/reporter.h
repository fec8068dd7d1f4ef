// The reporter of a run's progress: metrics.jsonl, TensorBoard events, a progress bar on a terminal
// or plain lines elsewhere, and warnings. Belongs to rank 0's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/checkpoints.h"
#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "apps/run/summary.h"
#include "apps/setup/replica.h"
#include "core/base/shared_cores.h"
#include "core/io/event_file.h"
#include "core/io/metrics.h"
#include "core/io/output_file.h"
#include "core/io/progress.h"

namespace wisp {

/// Resources spent so far, on rank 0.
struct Spent {
  double seconds = 0.0;    // training in this process, without evaluation and checkpoints
  int64_t bytes_sent = 0;  // since the run began
};

struct StepLine {
  const Position& position;  // after the step
  const StepReport& report;
  double work_per_s = 0.0;
  double seconds_per_step = 0.0;
  Spent spent;
};

/// The results of an evaluation; empty for a split that it left out.
struct Evaluated {
  std::optional<TallyValues> validation, test;
  std::vector<TestUnit> test_units;  // of the run's last evaluation
};

class Reporter {
 public:
  /// `quiet`: no progress is printed. The arguments outlive this object.
  Reporter(const RunDirectory& directory, const TrainOptions& options, const RunFacts& facts,
           bool quiet);

  /// open_metrics() begins metrics.jsonl. resume_metrics() continues it after `steps`, with the
  /// rows that `keep` accepts.
  void open_metrics();
  void resume_metrics(int64_t steps,
                      const std::function<bool(const std::string& type, int64_t step)>& keep);
  /// Prints a line of progress that stays.
  void say(const std::string& text);
  /// Waits until all metrics so far are on disk.
  void sync() { metrics_->sync(); }
  /// Prints a line for the user on stderr, even if quiet.
  void warn(const std::string& text);
  /// Call after every step; writes the step's health if it was measured.
  void step(const StepLine& line);
  /// Call after a step whose metrics were gathered. `tally` covers the time since the last call.
  void metrics(const StepLine& line, const TallyValues& tally);
  /// Call after a step that measured the distance between the workers' weights.
  void consensus(int64_t total_step, double distance);
  /// Call after `epochs` epochs; the last one may be cut short. `distance` is the one between the
  /// workers' weights, if they differ.
  void epoch(double epochs, int64_t total_step, const TallyValues& train,
             const Evaluated& evaluated, std::optional<double> distance, double work_per_s,
             const Spent& spent);
  /// Call if a resumed run had ended after `steps` steps. `changes`: from the run, not made.
  void nothing_left(int64_t steps, const std::string& changes);
  void finish(const Summary& summary);
  /// Call after `steps` steps if the run was asked to stop.
  void stopped(int64_t steps);

 private:
  void open_events(int64_t steps);
  void write(const MetricRow& row, int64_t step);
  void foretell(const StepLine& line);
  void advise();
  void health(const Health& health, int64_t step);
  void alarm(double epochs, const TallyValues& train);
  void add_metrics(MetricRow& row, const std::string& prefix,
                   const std::optional<TallyValues>& values) const;

  const RunDirectory& directory_;
  const TrainOptions& options_;
  const RunFacts& facts_;
  const std::string metrics_path_;
  std::optional<OutputFile> metrics_;
  std::optional<EventFile> events_;
  double seconds_before_ = 0.0;  // training time in processes before this one
  const Terminal terminal_;
  ProgressLine progress_;
  bool quiet_;
  bool foretold_ = false;
  std::optional<SharedCores> cores_;  // set between the first step and the advice
  bool advised_ = false;
  double looked_us_ = 0.0;  // last look at the cores
  double drawn_us_ = 0.0;   // last drawing of the bar
  TallyValues last_;
  std::vector<int64_t> alarming_;  // by metric: consecutive epochs above its bound
  StepCost since_line_;            // sum over steps since a multiple of log_every
};

}  // namespace wisp
