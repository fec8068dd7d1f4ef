// Tells what a run does while it runs: metrics.jsonl, the same for TensorBoard, a progress bar on a
// terminal or plain lines elsewhere, and warnings. Rank 0's thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "apps/run/summary.h"
#include "apps/setup/replica.h"
#include "core/base/shared_cores.h"
#include "core/io/event_file.h"
#include "core/io/metrics.h"
#include "core/io/progress.h"

namespace wisp {

/// What the run took so far, on rank 0.
struct Spent {
  double seconds = 0.0;    // of training in this process, without evaluation and checkpoints
  int64_t bytes_sent = 0;  // since the run began
};

struct StepLine {
  int64_t epoch = 0;       // from 0
  int64_t step = 0;        // of the epoch, done
  int64_t steps = 1;       // of the epoch
  int64_t total_step = 0;  // of the run, done
  const StepReport& report;
  double work_per_s = 0.0;
  double seconds_per_step = 0.0;
  Spent spent;
};

/// What an evaluation found of the splits that it looked at.
struct Evaluated {
  std::optional<TallyValues> validation, test;
};

class Reporter {
 public:
  /// `quiet`: no progress. The arguments outlive this object.
  Reporter(const RunDirectory& directory, const TrainOptions& options, const RunFacts& facts,
           bool quiet);

  /// Begins metrics.jsonl; in a run that is resumed after `steps`, when `keep` has chosen among its
  /// rows.
  void open_metrics();
  void resume_metrics(int64_t steps,
                      const std::function<bool(const std::string& type, int64_t step)>& keep);
  /// A line of progress that stays.
  void say(const std::string& text);
  /// Returns when all metrics so far are on the disk.
  void sync() { metrics_->sync(); }
  /// What a person should know, quiet or not: a line on stderr, whatever is drawn.
  void warn(const std::string& text);
  /// After every step; writes its health, if it was measured.
  void step(const StepLine& line);
  /// After a step whose metrics were gathered: `tally` since the last such step.
  void metrics(const StepLine& line, const TallyValues& tally);
  /// After a step at which it was measured how far the workers' weights are apart.
  void consensus(int64_t total_step, double distance);
  /// After `epochs` epochs, the last one perhaps cut short. `distance` is how far the workers'
  /// weights are apart, if they differ.
  void epoch(double epochs, int64_t total_step, const TallyValues& train,
             const Evaluated& evaluated, std::optional<double> distance, double work_per_s,
             const Spent& spent);
  void finish(const Summary& summary);
  /// The run was asked to stop after so many steps.
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
  std::optional<MetricsWriter> metrics_;
  std::optional<EventFile> events_;
  double seconds_before_ = 0.0;  // of training, in the processes that this one resumes
  const Terminal terminal_;
  ProgressLine progress_;
  bool quiet_;
  bool foretold_ = false;
  std::optional<SharedCores> cores_;  // from the first step until the advice was given
  bool advised_ = false;
  double looked_us_ = 0.0;  // at the cores
  double drawn_us_ = 0.0;   // when the bar was drawn last
  TallyValues last_;
  std::vector<int64_t> alarming_;  // by metric: epochs in a row that it was above its bound
  StepCost since_line_;            // of the steps since the last multiple of log_every
};

}  // namespace wisp
