#include "apps/table/table_figures.h"

#include <algorithm>
#include <cmath>

#include "apps/sweep/sample.h"
#include "apps/table/bootstrap.h"
#include "distributed/communicator/link.h"

namespace wisp {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kNever = std::numeric_limits<double>::infinity();

/// The 97.5 % quantile of Student's t with so many degrees of freedom, to three digits.
double student_quantile(size_t freedom) {
  constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                   2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                   2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom <= std::size(kQuantiles)) return kQuantiles[freedom - 1];
  // Cornish-Fisher expansion about the normal quantile z, off by less than 0.001 from here on
  const double z = 1.959964, n = static_cast<double>(freedom), z3 = z * z * z;
  return z + (z3 + z) / (4.0 * n) + (5.0 * z3 * z * z + 16.0 * z3 + 3.0 * z) / (96.0 * n * n);
}

/// NaN if the run diverged, whatever its summary says.
double shown_score(const TableResult& result) {
  if (!result.run.diverged.empty()) return kNone;
  return result.run.facts.metric().scale() * result.run.score("test");
}

/// The step at which the score first is at the target; infinite if it never is. With a validation
/// split, the test set is evaluated at the end only.
double step_at(const RunRecord& run, double target) {
  const Metric& metric = run.facts.metric();
  for (const EpochRow& epoch : run.metrics.epochs) {
    const double score = run.facts.has_validation ? epoch.validation_metric : epoch.test_metric;
    if (std::isfinite(score) && !metric.better(target, metric.scale() * score))
      return static_cast<double>(epoch.step);
  }
  return kNever;
}

std::vector<const TableResult*> results_of(size_t row, std::span<const TableResult> results) {
  std::vector<const TableResult*> own;
  for (const TableResult& result : results) {
    if (result.row == row) own.push_back(&result);
  }
  return own;
}

/// A run and the dense run of its seed.
struct Pair {
  const TableResult& run;
  const TableResult& dense;

  double difference() const { return shown_score(run) - shown_score(dense); }
};

/// Pairs of equal seed and origin whose scores are finite.
std::vector<Pair> paired(const std::vector<const TableResult*>& row,
                         const std::vector<const TableResult*>& dense) {
  std::vector<Pair> pairs;
  for (const TableResult* run : row) {
    for (const TableResult* other : dense) {
      if (run->seed != other->seed || run->origin() != other->origin()) continue;
      const Pair pair{*run, *other};
      if (std::isfinite(pair.difference())) pairs.push_back(pair);
    }
  }
  return pairs;
}

/// True if the run's test units have the names and divisors of `units`, and make up its score.
bool has_units(const TableResult& result, const std::vector<TestUnit>& units) {
  const std::vector<TestUnit>& own = result.run.summary->test_units;
  double sum = 0.0, divisor = 0.0;
  for (const TestUnit& unit : own) {
    sum += unit.sum;
    divisor += unit.divisor;
  }
  const double score = result.run.score("test");
  return std::abs(sum / divisor - score) <= 1e-9 * std::abs(score) &&
         std::equal(own.begin(), own.end(), units.begin(), units.end(),
                    [](const TestUnit& a, const TestUnit& b) {
                      return a.name == b.name && a.divisor == b.divisor && a.divisor > 0.0;
                    });
}

/// bootstrap_half() of the pairs, in the unit shown; NaN unless all runs have the same test units.
double drawn_half(const std::vector<Pair>& pairs) {
  const std::vector<TestUnit>& units = pairs.front().run.run.summary->test_units;
  std::vector<std::vector<double>> differences;
  for (const auto& [run, dense] : pairs) {
    if (!has_units(run, units) || !has_units(dense, units)) return kNone;
    std::vector<double>& of_pair = differences.emplace_back();
    for (size_t u = 0; u < units.size(); ++u)
      of_pair.push_back(run.run.summary->test_units[u].sum - dense.run.summary->test_units[u].sum);
  }
  std::vector<double> divisors;
  for (const TestUnit& unit : units) divisors.push_back(unit.divisor);
  return pairs.front().run.run.facts.metric().scale() * bootstrap_half(differences, divisors);
}

/// The wider of Student's interval and the drawn one. It is a little too narrow where there are
/// many pairs, whose spread and that of the units should be added.
std::optional<Estimate> change_of(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return std::nullopt;
  std::vector<double> differences;
  for (const Pair& pair : pairs) differences.push_back(pair.difference());
  Estimate change = estimate(differences);
  const double drawn = drawn_half(pairs);
  change.by_units = !std::isnan(drawn);
  if (change.by_units) change.half = std::max(change.half, drawn);
  return change;
}

/// The median over the logged steps.
double median_of(const RunRecord& run, double StepTimes::*part) {
  std::vector<double> values;
  for (const StepRow& step : run.metrics.steps) {
    if (std::isfinite(step.times.*part)) values.push_back(step.times.*part);
  }
  if (values.empty()) return run.summary->times.*part;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double mean_hours(const std::vector<const TableResult*>& row, std::optional<double> target,
                  double gbit_per_s) {
  if (!target) return kNone;
  std::vector<double> hours;
  for (const TableResult* result : row) {
    const std::optional<Summary>& summary = result->run.summary;
    if (!summary || !result->run.diverged.empty()) return kNever;
    if (summary->times.step_ms() == 0.0 || result->origin() != row.front()->origin()) return kNone;
    const double steps = step_at(result->run, *target);
    hours.push_back(steps * modelled_step_ms(result->run, gbit_per_s) / 3.6e6);
  }
  return mean_of(hours);
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  Estimate result{.mean = mean_of(values), .values = values.size()};
  if (values.size() > 1)
    result.half = student_quantile(values.size() - 1) * deviation_of(values) /
                  std::sqrt(static_cast<double>(values.size()));
  return result;
}

double modelled_step_ms(const RunRecord& run, double gbit_per_s) {
  if (!run.summary) return kNone;
  const auto typical = [&](double StepTimes::*part) { return median_of(run, part); };
  const double compute = typical(&StepTimes::loader_ms) + typical(&StepTimes::compute_ms);
  const double wire =
      1e-3 * duration_us({.gbit_per_s = gbit_per_s}, std::llround(run.summary->bytes_sent),
                         std::llround(run.summary->bytes_received), 0);
  return std::max(compute, compute / 3.0 + typical(&StepTimes::encode_ms) + wire +
                               typical(&StepTimes::decode_ms));
}

std::vector<RowFigures> figures_of(const TableFile& table, const TableScale& scale,
                                   std::span<const TableResult> results) {
  const size_t dense_index = table.dense_index();
  const std::vector<const TableResult*> dense = results_of(dense_index, results);
  std::vector<RowFigures> all;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::vector<const TableResult*> own = results_of(r, results);
    RowFigures& row = all.emplace_back();
    row.runs = own.size();
    if (own.empty()) continue;
    std::vector<double> scores, bytes, reductions;
    for (const TableResult* result : own) {
      const double score = shown_score(*result);
      if (std::isfinite(score)) scores.push_back(score);
      if (!result->run.summary || !result->run.diverged.empty()) continue;
      bytes.push_back(result->run.summary->bytes_sent);
      reductions.push_back(result->run.summary->reduction_sent);
    }
    row.diverged = own.size() - scores.size();
    if (!scores.empty()) {
      row.score = estimate(scores);
      row.deviation = deviation_of(scores);
    }
    if (r != dense_index) row.change = change_of(paired(own, dense));
    row.bytes_sent = mean_of(bytes);
    row.reduction = mean_of(reductions);
    for (size_t l = 0; l < kTableGbits.size(); ++l)
      row.hours_to_target[l] = mean_hours(own, scale.target, kTableGbits[l]);
  }
  return all;
}

}  // namespace wisp
