// Sums over the batches of a worker, kept on its device until somebody asks.
#pragma once

#include <vector>

#include "core/autograd.h"
#include "core/io/saved_state.h"

namespace wisp {

/// Read between steps. Plain sums, so that workers add up.
struct TallyValues {
  double loss = 0.0;  // sum over batches of the mean loss
  double batches = 0.0;
  double correct = 0.0;
  double samples = 0.0;

  TallyValues& operator+=(const TallyValues& other) {
    loss += other.loss;
    batches += other.batches;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
  double mean_loss() const { return batches > 0 ? loss / batches : 0.0; }
  double accuracy() const { return samples > 0 ? correct / samples : 0.0; }
};

class Tally {
 public:
  explicit Tally(Context& context);
  /// A step of one or more micro-batches begins.
  void begin_step();
  /// Adds a batch: its loss (one element; left out of the sums if it is not finite), and how many
  /// of its rows of logits point at their labels.
  void add(const Variable& loss, const Variable& logits, const Tensor& labels);
  /// (1) f64: sum of the losses since begin_step(), the non-finite ones too.
  const Tensor& step_loss() const { return step_loss_; }
  /// The sums so far, for a checkpoint.
  std::vector<SavedState> state() const {
    return {{"tally/losses", losses_, Sharing::per_rank, OnResize::redistribute_sum},
            {"tally/counts", counts_, Sharing::per_rank, OnResize::redistribute_sum}};
  }
  /// Waits for the stream, returns the sums so far and starts again at zero.
  TallyValues take();

 private:
  Context& context_;
  Tensor step_loss_;
  Tensor losses_;  // (2) f64: sum, batches
  Tensor counts_;  // (2) i64: correct, samples
};

}  // namespace wisp
