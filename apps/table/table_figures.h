// The figures of a table: what its runs reached, beside the dense runs of the same seeds. Any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/run/run_record.h"
#include "apps/table/table_file.h"

namespace wisp {

/// A run of a row that has ended: it has a summary, or diverged.
struct TableResult {
  size_t row = 0;  // index in the table's rows
  int64_t seed = 0;
  RunRecord run;

  /// What its bits depend on beside configuration and seed: program, libraries, CPU.
  std::string origin() const { return run.version + ", computed with: " + run.numerics(); }
};

/// A mean with its 95 % interval, mean ± half.
struct Estimate {
  double mean = 0.0;
  double half = std::numeric_limits<double>::quiet_NaN();  // of one value: unknown
  size_t values = 0;
  bool by_units = false;  // half covers other test units too (bootstrap_half())
};

/// The mean of some values, with Student's interval, which takes them as draws from a normal
/// distribution. At least one value.
Estimate estimate(const std::vector<double>& values);

/// Links for which the time to a target is modelled.
inline constexpr std::array<double, 3> kTableGbits = {0.1, 1.0, 10.0};

/// Figures of a row. Scores are in the unit shown (percent, perplexity), bytes per step and worker.
struct RowFigures {
  size_t runs = 0;                 // that have ended
  size_t diverged = 0;             // runs that diverged, or whose score is not a finite number
  std::optional<Estimate> score;   // of the test set, over seeds that did not diverge
  double deviation = 0.0;          // sample standard deviation of the scores; NaN for one
  std::optional<Estimate> change;  // of the score from dense, by pairs of equal seed and origin
  double bytes_sent = 0.0;         // of runs that did not diverge; NaN without one
  double reduction = 0.0;          // bytes of dense / bytes sent, likewise
  /// Modelled hours of training until the score after an epoch is at the target, by kTableGbits:
  /// the validation split's if the runs have one, else the test set's. Infinite if a run does not
  /// get there. NaN without a target, without times, or where the runs are of several origins.
  std::array<double, kTableGbits.size()> hours_to_target{};
};

/// One entry per row.
std::vector<RowFigures> figures_of(const TableFile& table, const TableScale& scale,
                                   std::span<const TableResult> results);

/// Modelled milliseconds of a step whose bytes travel at `gbit_per_s` in each direction: the longer
/// of compute, and a third of compute (forward), encode, wire and decode one after the other.
/// Compute includes the wait for the loader. Latency is left out. Times are medians over the steps
/// in metrics.jsonl, which other programs disturb less than means; of a run without steps there,
/// the summary's means. NaN for a run without a summary.
double modelled_step_ms(const RunRecord& run, double gbit_per_s);

}  // namespace wisp
