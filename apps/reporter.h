// Tells what a run does while it runs: metrics.jsonl, and a progress bar on a terminal or plain
// lines elsewhere. Rank 0's thread only.
#pragma once

#include "apps/replica.h"
#include "apps/run_directory.h"
#include "apps/trainer.h"
#include "core/metrics.h"
#include "core/progress.h"

namespace wisp {

struct StepLine {
  int64_t epoch = 0;       // from 0
  int64_t step = 0;        // of the epoch, done
  int64_t steps = 1;       // of the epoch
  int64_t total_step = 0;  // of the run, done
  const StepReport& report;
  double images_per_s = 0.0;
};

class Reporter {
 public:
  Reporter(const RunDirectory& directory, const TrainOptions& options, bool resume, bool quiet);

  /// After every step.
  void step(const StepLine& line);
  /// After a step whose metrics were gathered: `tally` since the last such step.
  void metrics(const StepLine& line, const TallyValues& tally);
  /// After `epochs` epochs, the last one perhaps cut short. `test_accuracy` is NaN if nothing was
  /// evaluated.
  void epoch(double epochs, int64_t total_step, const TallyValues& train, double test_accuracy,
             double images_per_s);
  void finish(const Summary& summary);

 private:
  const TrainOptions& options_;
  MetricsWriter metrics_;
  const Terminal terminal_;
  ProgressLine progress_;
  bool quiet_;
  double drawn_us_ = 0.0;  // when the bar was drawn last
  TallyValues last_;
};

}  // namespace wisp
