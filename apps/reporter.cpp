#include "apps/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"

namespace wisp {
namespace {

constexpr double kRedrawUs = 100e3;  // a terminal may be slow, and nobody reads faster

}  // namespace

Reporter::Reporter(const RunDirectory& directory, const TrainOptions& options, bool quiet)
    : options_(options),
      metrics_path_(directory.file("metrics.jsonl")),
      terminal_(world().processes() ? Terminal{} : terminal_of(stdout)),
      progress_(stdout, terminal_, options.log_every),
      quiet_(quiet) {}

void Reporter::open_metrics() { metrics_.emplace(metrics_path_, OutputFile::Mode::replace); }

void Reporter::resume_metrics(
    const std::function<bool(const std::string& type, int64_t step)>& keep) {
  keep_metrics(metrics_path_, keep);
  metrics_.emplace(metrics_path_, OutputFile::Mode::append);
}

void Reporter::say(const std::string& text) {
  if (!quiet_) progress_.say(text);
}

void Reporter::step(const StepLine& line) {
  if (quiet_) return;
  for (const std::string& name : line.report.cost.nonfinite) {
    progress_.say(
        fmt::format("step {}: the gradient of {} was not finite on this worker; it counted as zero",
                    line.total_step, name));
  }
  const double now = now_us();
  if (terminal_.interactive && now - drawn_us_ < kRedrawUs && line.step < line.steps) return;
  drawn_us_ = now;
  ProgressReport progress;
  progress.epoch = line.epoch + 1;
  progress.epochs = options_.epochs;
  progress.step = line.step;
  progress.steps = line.steps;
  if (last_.batches > 0) {
    progress.loss = last_.mean_loss();
    progress.accuracy = last_.accuracy();
  }
  progress.rate = line.images_per_s;
  const StepCost& cost = line.report.cost;
  progress.reduction = cost.bytes_sent > 0 ? static_cast<double>(cost.bytes_dense) /
                                                 static_cast<double>(cost.bytes_sent)
                                           : 0.0;
  int64_t left = (options_.epochs - line.epoch) * line.steps - line.step;
  if (options_.max_steps > 0) left = std::min(left, options_.max_steps - line.total_step);
  progress.left_s = static_cast<double>(left * options_.batch) / line.images_per_s;
  progress_.update(progress);
}

void Reporter::metrics(const StepLine& line, const TallyValues& tally) {
  last_ = tally;
  const StepCost& cost = line.report.cost;
  metrics_->write({{"type", std::string("step")},
                   {"step", line.total_step},
                   {"epoch", static_cast<double>(line.epoch) +
                                 static_cast<double>(line.step) / static_cast<double>(line.steps)},
                   {"lr", line.report.lr},
                   {"loss", tally.mean_loss()},
                   {"accuracy", tally.accuracy()},
                   {"images_per_s", line.images_per_s},
                   {"bytes_raw", cost.bytes_raw},
                   {"bytes_encoded", cost.bytes_encoded},
                   {"bytes_sent", cost.bytes_sent},
                   {"bytes_received", cost.bytes_received},
                   {"compute_ms", line.report.compute_ms},
                   {"encode_ms", cost.encode_ms},
                   {"wait_ms", cost.wait_ms},
                   {"wire_ms", cost.wire_ms},
                   {"decode_ms", cost.decode_ms}});
}

void Reporter::epoch(double epochs, int64_t total_step, const TallyValues& train,
                     double test_accuracy, double images_per_s) {
  metrics_->write({{"type", std::string("epoch")},
                   {"epoch", epochs},
                   {"step", total_step},
                   {"train_loss", train.mean_loss()},
                   {"train_accuracy", train.accuracy()},
                   {"test_accuracy", test_accuracy},
                   {"images_per_s", images_per_s}});
  if (quiet_) return;
  std::string text = fmt::format("epoch {:.4g}: train loss {:.4f}, train accuracy {:.2f} %", epochs,
                                 train.mean_loss(), 100.0 * train.accuracy());
  if (!std::isnan(test_accuracy))
    text += fmt::format(", test accuracy {:.2f} %", 100.0 * test_accuracy);
  progress_.say(text);
}

void Reporter::finish(const Summary& summary) {
  progress_.finish();
  if (quiet_) return;
  progress_.say(fmt::format(
      "test accuracy {:.2f} %, {:.0f} images/s, {:.0f} bytes sent a step and worker: {:.1f}x less "
      "than dense",
      100.0 * summary.test_accuracy, summary.images_per_s, summary.bytes_sent,
      summary.reduction_sent));
}

void Reporter::stopped(int64_t steps) {
  progress_.finish();
  say(fmt::format("stopped after step {}; its checkpoint is saved, go on with --resume", steps));
}

}  // namespace wisp
