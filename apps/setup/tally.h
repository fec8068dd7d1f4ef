// Sums of loss and metrics over a worker's batches, kept on its device until they are read. Belongs
// to its worker's thread.
#pragma once

#include <vector>

#include "core/device_words.h"
#include "core/io/saved_state.h"
#include "models/model.h"

namespace wisp {

/// The warning for an evaluation whose loss is not finite.
inline constexpr const char* kNotFinite = "the loss is not finite; has the model diverged?";

/// The sums as read between steps. They are plain, so the sums of workers add up.
struct TallyValues {
  std::vector<double> sums;  // pairs (sum, divisor): of the loss, then of each metric

  TallyValues& operator+=(const TallyValues& other);
  /// Whether any target was counted.
  bool any() const { return sums.size() > 1 && sums[1] > 0.0; }
  /// Mean over targets; 0 without targets. An evaluation with a loss that is not finite gives a
  /// mean that is not finite.
  double mean_loss() const { return mean(0); }
  /// The value of the model's i-th metric; NaN without targets for it.
  double value(const Metric& metric, size_t i) const;
  /// The value as a result of the run: NaN also if the mean loss is not finite, because a model of
  /// NaN counts as right whatever its first output stands for.
  double score(const Metric& metric, size_t i) const;
  /// Throws Error unless the sums, from a file, are pairs whose divisors can be counts.
  void check() const;
  int64_t targets() const { return sums.empty() ? 0 : static_cast<int64_t>(sums[1]); }

 private:
  double mean(size_t pair) const;
};

class Tally {
 public:
  Tally(Context& context, const Model& model);
  /// Begins a training step of one or more micro-batches.
  void begin_step();
  /// Takes back all that add() has added since begin_step(), because the step is skipped.
  void drop_step();
  /// Adds a batch: its loss, weighted as in add_mean(), and its metrics.
  void add(const Step& step, const Batch& batch);
  /// (1) f64: sum of the losses since begin_step(), including non-finite ones.
  const Tensor& step_loss() const { return step_loss_; }
  /// The sums so far, for a checkpoint.
  SavedState state() const {
    return {.name = "tally",
            .tensor = sums_.device(),
            .on_resize = OnResize::redistribute_sum,
            .check = [](const Tensor& sums) {
              const auto* values = sums.data<double>();
              TallyValues{{values, values + sums.numel()}}.check();
            }};
  }
  /// Waits for the stream, returns the sums so far and starts again at zero.
  TallyValues take();

 private:
  Context& context_;
  const Model& model_;
  Tensor step_loss_;
  Tensor before_;     // the sums at begin_step()
  DeviceWords sums_;  // (1 + metrics, 2) f64
};

}  // namespace wisp
