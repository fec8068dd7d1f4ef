// Sums over the batches of a worker, kept on its device until somebody asks.
#pragma once

#include <vector>

#include "core/device_words.h"
#include "core/io/saved_state.h"
#include "models/model.h"

namespace wisp {

/// Said of an evaluation whose loss is not finite.
inline constexpr const char* kNotFinite = "the loss is not finite; has the model diverged?";

/// Read between steps. Plain sums, so that workers add up.
struct TallyValues {
  std::vector<double> sums;  // of the loss, then of each metric: a sum and what it is divided by

  TallyValues& operator+=(const TallyValues& other);
  /// Whether any target was counted.
  bool any() const { return sums.size() > 1 && sums[1] > 0.0; }
  /// Over targets; 0 if there is none. In training of the losses that are finite; of an evaluation
  /// with one that is not, not finite.
  double mean_loss() const { return mean(0); }
  /// The value of a metric, the i-th of the model's; NaN if it has no target.
  double value(const Metric& metric, size_t i) const;
  int64_t targets() const { return sums.empty() ? 0 : static_cast<int64_t>(sums[1]); }

 private:
  double mean(size_t pair) const;
};

class Tally {
 public:
  Tally(Context& context, const Model& model);
  /// A step of one or more micro-batches begins.
  void begin_step();
  /// Adds a batch: its loss, as add_mean() does, and its metrics.
  void add(const Step& step, const Batch& batch);
  /// (1) f64: sum of the losses since begin_step(), the non-finite ones too.
  const Tensor& step_loss() const { return step_loss_; }
  /// The sums so far, for a checkpoint.
  SavedState state() const {
    return {"tally", sums_.device(), Sharing::per_rank, OnResize::redistribute_sum};
  }
  /// Waits for the stream, returns the sums so far and starts again at zero.
  TallyValues take();

 private:
  Context& context_;
  const Model& model_;
  Tensor step_loss_;
  DeviceWords sums_;  // (1 + metrics, 2) f64
};

}  // namespace wisp
