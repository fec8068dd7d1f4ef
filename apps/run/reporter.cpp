#include "apps/run/reporter.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/run/run_record.h"
#include "core/base/clock.h"
#include "core/io/output_streams.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {
namespace {

constexpr double kRedrawUs = 100e3;  // terminals may be slow, and readers are slower

constexpr double kLongSilenceS = 30.0;

constexpr double kLookAtCoresUs = 5e6;

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// "wire_ms" of a step row -> "ms/wire". TensorBoard groups tags by their first part.
std::string tag_of(const std::string& type, const std::string& name) {
  if (type == "epoch" || type == "health") return type + "/" + name;
  if (name.ends_with("_ms")) return "ms/" + name.substr(0, name.size() - 3);
  if (name.starts_with("bytes_")) return "bytes/" + name.substr(6);
  return "train/" + name;
}

double reduction_sent(const StepCost& cost) {
  return reduction(static_cast<double>(cost.bytes_dense), static_cast<double>(cost.bytes_sent));
}

/// The mean loss; NaN for a split that was not evaluated, or without targets.
double loss_of(const std::optional<TallyValues>& values) {
  return values && values->any() ? values->mean_loss() : std::nan("");
}

std::vector<Scalar> scalars_of(const MetricRow& row) {
  const std::string& type = std::get<std::string>(row.front().second);
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : row) {
    if (name == "step") continue;
    if (const auto* number = std::get_if<double>(&value)) {
      scalars.emplace_back(tag_of(type, name), *number);
    } else if (const auto* count = std::get_if<int64_t>(&value)) {
      scalars.emplace_back(tag_of(type, name), static_cast<double>(*count));
    }
  }
  return scalars;
}

}  // namespace

Reporter::Reporter(const RunDirectory& directory, const TrainOptions& options,
                   const RunFacts& facts, bool quiet)
    : directory_(directory),
      options_(options),
      facts_(facts),
      metrics_path_(directory.file(kMetricsFile)),
      terminal_(world().processes() ? Terminal{} : terminal_of(stdout, environment("TERM"))),
      progress_(stdout, terminal_, options.log_every),
      quiet_(quiet) {}

void Reporter::open_metrics() {
  metrics_.emplace(metrics_path_, OutputFile::Mode::replace);
  open_events(0);
}

void Reporter::resume_metrics(
    int64_t steps, const std::function<bool(const std::string& type, int64_t step)>& keep) {
  keep_metrics(metrics_path_, keep);
  metrics_.emplace(metrics_path_, OutputFile::Mode::append);  // an imported run has none yet
  for (const StepRow& row : read_metrics(metrics_path_).steps) {
    if (std::isfinite(row.seconds)) seconds_before_ = row.seconds;
  }
  open_events(steps);
}

/// Opens a new events file. Its name ends in the step at which this process begins, so it holds no
/// time, and files sort in the order of steps.
void Reporter::open_events(int64_t steps) {
  const std::string name = event_file(steps);
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    const std::string other = entry.path().filename().string();
    if (is_event_file(other) && other >= name) remove_run_file(directory_.path(), other.c_str());
  }
  if (options_.tensorboard) events_.emplace(directory_.file(name), steps + 1, seconds_since_1970());
}

void Reporter::write(const MetricRow& row, int64_t step) {
  metrics_->write(to_json(row) + "\n");  // readers see the whole line at once
  if (events_) events_->scalars(step, seconds_since_1970(), scalars_of(row));
}

void Reporter::say(const std::string& text) {
  if (!quiet_) progress_.say(text);
}

void Reporter::warn(const std::string& text) {
  progress_.clear();
  write_notice(text);
}

void Reporter::health(const Health& health, int64_t step) {
  write({{"type", std::string("health")},
         {"step", step},
         {"residual", health.residual},
         {"staleness", health.staleness},
         {"cosine", health.cosine}},
        step);
  std::string text =
      fmt::format("step {}: cosine {:.3f} of the decoded with the true mean", step, health.cosine);
  if (!std::isnan(health.residual))
    text += fmt::format(", {:.3g} times the gradient waits", health.residual);
  if (!std::isnan(health.staleness))
    text += fmt::format(", an element was sent {:.3g} steps ago", health.staleness);
  say(text);
}

void Reporter::step(const StepLine& line) {
  const Position& at = line.position;
  if (line.report.health) health(*line.report.health, at.step);
  const auto left_out = [&](const std::vector<std::string>& names, const char* why) {
    for (const std::string& name : names)
      warn(fmt::format("step {}: the gradient of {} {} on this worker; it counted as zero", at.step,
                       name, why));
  };
  left_out(line.report.cost.nonfinite, "was not finite");
  left_out(line.report.cost.too_large, "was finite, but had a norm above 2^96,");
  if (quiet_) return;
  foretell(line);
  advise();
  since_line_ += line.report.cost;
  const double now = now_us();
  if (terminal_.interactive && now - drawn_us_ < kRedrawUs && at.in_epoch < at.steps_per_epoch)
    return;
  drawn_us_ = now;
  ProgressReport progress;
  progress.epoch = at.epoch + 1;
  progress.epochs = options_.epochs;
  progress.step = at.in_epoch;
  progress.steps = at.steps_per_epoch;
  if (last_.any()) {
    progress.loss = last_.mean_loss();
    const Metric& metric = facts_.metric();
    progress.metric = metric.name + " " + metric.text(last_.value(metric, 0));
  }
  progress.rate = line.work_per_s;
  progress.unit = facts_.facts.work;
  if (since_line_.bytes_sent > 0) progress.reduction = reduction_sent(since_line_);
  int64_t left = (options_.epochs - at.epoch) * at.steps_per_epoch - at.in_epoch;
  if (options_.max_steps > 0) left = std::min(left, options_.max_steps - at.step);
  progress.left_s = static_cast<double>(left) * line.seconds_per_step;
  progress_.update(progress);
  if (at.step % options_.log_every == 0) since_line_ = {};
}

/// If lines are far apart, says after the first step when the next line will come.
void Reporter::foretell(const StepLine& line) {
  if (foretold_ || terminal_.interactive) return;
  foretold_ = true;
  const Position& at = line.position;
  const int64_t steps =
      std::min(options_.log_every - at.step % options_.log_every, at.steps_per_epoch - at.in_epoch);
  const double seconds = static_cast<double>(steps) * line.seconds_per_step;
  if (steps == options_.log_every || seconds < kLongSilenceS) return;
  progress_.say(fmt::format(
      "the first step took {}; the next line comes after {} more, in about {} "
      "(train.log_every is {})",
      duration_text(line.seconds_per_step), steps, duration_text(seconds), options_.log_every));
}

/// Advises once if threads and other programs compete for cores. Not for several processes, which
/// cannot be told from other programs, nor if OMP_WAIT_POLICY is set.
void Reporter::advise() {
  const double now = now_us();
  if (advised_ || (cores_ && now - looked_us_ < kLookAtCoresUs)) return;
  looked_us_ = now;
  if (!cores_) {
    cores_.emplace();
    advised_ = omp_get_max_threads() < 2 || world().processes() || options_.device != "cpu" ||
               !environment("OMP_WAIT_POLICY").empty();
    return;
  }
  const std::string advice = shared_cores_advice(cores_->taken_by_others(), cores_->cores(),
                                                 options_.workers, omp_get_max_threads());
  if (advice.empty()) return;
  advised_ = true;
  progress_.say(advice);
}

/// Adds PREFIX_METRIC for each metric; NaN for a split that was not evaluated.
void Reporter::add_metrics(MetricRow& row, const std::string& prefix,
                           const std::optional<TallyValues>& values) const {
  for (size_t i = 0; i < facts_.metrics.size(); ++i) {
    const Metric& metric = facts_.metrics[i];
    row.emplace_back(prefix + metric.name, values ? values->value(metric, i) : std::nan(""));
  }
}

void Reporter::metrics(const StepLine& line, const TallyValues& tally) {
  last_ = tally;
  const StepCost& cost = line.report.cost;
  MetricRow row{{"type", std::string("step")},
                {"step", line.position.step},
                {"epoch", line.position.epochs()},
                {"lr", line.report.lr},
                {"loss", loss_of(tally)}};
  add_metrics(row, "", tally);
  row.insert(row.end(), {{facts_.facts.work + "_per_s", line.work_per_s},
                         {"bytes_raw", cost.bytes_raw},
                         {"bytes_encoded", cost.bytes_encoded},
                         {"bytes_sent", cost.bytes_sent},
                         {"bytes_received", cost.bytes_received},
                         {"bytes_sent_total", line.spent.bytes_sent},
                         {"reduction_sent", reduction_sent(cost)},
                         {"seconds", seconds_before_ + line.spent.seconds}});
  const StepTimes times = times_of(line.report);
  for (const auto& [name, time] : kStepTimes) row.emplace_back(name, times.*time);
  write(row, line.position.step);
}

void Reporter::consensus(int64_t total_step, double distance) {
  write(
      {{"type", std::string("consensus")}, {"step", total_step}, {"consensus_distance", distance}},
      total_step);
}

void Reporter::epoch(double epochs, int64_t total_step, const TallyValues& train,
                     const Evaluated& evaluated, std::optional<double> distance, double work_per_s,
                     const Spent& spent) {
  const std::optional<TallyValues>& validation = evaluated.validation;
  const std::optional<TallyValues>& test = evaluated.test;
  const bool validates = facts_.has_validation;
  MetricRow row{{"type", std::string("epoch")},
                {"epoch", epochs},
                {"step", total_step},
                {"train_loss", loss_of(train)}};
  add_metrics(row, "train_", train);
  const auto add_split = [&](const std::string& prefix, const std::optional<TallyValues>& values) {
    row.emplace_back(prefix + "loss", loss_of(values));
    add_metrics(row, prefix, values);
  };
  if (validates) add_split("validation_", validation);
  if (!validates || test) add_split("test_", test);
  row.emplace_back(facts_.facts.work + "_per_s", work_per_s);
  row.emplace_back("bytes_sent_total", spent.bytes_sent);
  row.emplace_back("seconds", seconds_before_ + spent.seconds);
  if (distance) row.emplace_back("consensus_distance", *distance);
  write(row, total_step);
  alarm(epochs, train);
  for (const auto& values : {validation, test}) {
    if (values && !std::isfinite(values->mean_loss()))
      warn(fmt::format("epoch {:.4g}: {}", epochs, kNotFinite));
  }
  if (quiet_) return;
  const Metric& metric = facts_.metric();
  std::string text = fmt::format("epoch {:.4g}: train loss {:.4f}", epochs, loss_of(train));
  const auto add = [&](const char* split, const std::optional<TallyValues>& values) {
    if (!values) return;
    text += fmt::format(", {} {} {}", split, metric.name, metric.text(values->value(metric, 0)));
  };
  add("train", train);
  add("validation", validation);
  add("test", test);
  if (distance) text += fmt::format(", workers {:.3g} apart", *distance);
  progress_.say(text);
}

/// Warns when a metric has been above its bound for some epochs, once until it recovers.
void Reporter::alarm(double epochs, const TallyValues& train) {
  alarming_.resize(facts_.metrics.size());
  for (size_t i = 0; i < facts_.metrics.size(); ++i) {
    const Metric& metric = facts_.metrics[i];
    if (!metric.alarm) continue;
    const double value = train.value(metric, i);
    alarming_[i] = value > metric.alarm->above ? alarming_[i] + 1 : 0;
    if (alarming_[i] == metric.alarm->epochs)
      warn(fmt::format("epoch {:.4g}: {} {}", epochs, metric.text(value), metric.alarm->meaning));
  }
}

void Reporter::nothing_left(int64_t steps, const std::string& changes) {
  const std::string text =
      fmt::format("the run has ended after step {}: nothing is left to train", steps);
  if (changes.empty()) return say(text);
  warn(fmt::format("{}, and its files stay as they are; these changes were not made: {}", text,
                   changes));
}

void Reporter::finish(const Summary& summary) {
  progress_.finish();
  if (!summary.diverged.empty())
    warn(concat("this run has diverged: ", summary.diverged,
                "; a smaller optimizer.lr or a clip.norm would help"));
  if (quiet_) return;
  const Metric& metric = facts_.metric();
  std::string text;
  for (const char* split : {"test", "validation"}) {
    const double value = summary.score_or_nan(split + ("_" + metric.name));
    if (!std::isnan(value))
      text += fmt::format("{} {} {}, ", split, metric.name, metric.text(value));
  }
  text += fmt::format("{:.0f} {}/s, ", summary.work_per_s, summary.work);
  text += options_.workers == 1
              ? "one worker sends nothing"
              : fmt::format("{:.0f} bytes sent a step and worker: {:.1f}x less than dense",
                            summary.bytes_sent, summary.reduction_sent);
  progress_.say(text);
  progress_.say(bottleneck_line(summary.times));
}

void Reporter::stopped(int64_t steps) {
  progress_.finish();
  say(fmt::format("stopped after step {}; its checkpoint is saved, go on with --resume", steps));
}

}  // namespace wisp
