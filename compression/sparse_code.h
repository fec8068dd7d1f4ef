// Codes that send some values of each field and their positions; they differ by the selection.
#pragma once

#include "compression/error_feedback.h"
#include "compression/pack.h"

namespace wisp {

/// Error feedback before it is known what travels: the residual holds all, sent or not.
struct Undecided : Source {
  Undecided() = default;
  /// The unit's gradient and its residual, its first state; zeros if the gradient is not finite.
  explicit Undecided(const Unit& unit) {
    if (!unit.finite) return;
    gradient = unit.gradient.data<float>();
    kept = unit.state->tensors[0].data<float>();
  }
  WISP_HD void sent(int64_t, float) const {}
};

/// Binds compression.selection: exact or sampled.
Selection bind_selection(Config& config);

/// Binds the ratio and its warm-up, and the formats of values and positions.
std::unique_ptr<Code> make_sparse_code(Config& config, const Selection& selection);

}  // namespace wisp
