// The keys of error feedback (error_feedback.h), as values.
#pragma once

#include "compression/momentum_correction.h"

namespace wisp {

enum class Feedback { none, ef, ef21, ef21_sgdm };

struct FeedbackOptions {
  Feedback kind = Feedback::none;
  bool update_units = false;  // the residual is scaled by the last learning rate over this one
  bool correction = false;    // none, ef: momentum correction
  bool masking = true;        // with correction: u <- 0 where something was sent
  LocalMomentum local;        // with ef21_sgdm or correction

  /// What ef's residual is scaled by in a step, whether or not a gradient joins it.
  float gain(const StepInfo& info) const;
};

/// Binds compression.feedback ("auto" is `published`, the method's own choice) and, for ef,
/// compression.residual. Throws Error for Nesterov's momentum with ef21_sgdm.
FeedbackOptions bind_feedback(Config& config, const CompressorSetup& setup, Feedback published);
/// Binds compression.momentum_correction, and masking for codes that leave elements out.
void bind_correction(Config& config, bool sparse, FeedbackOptions& options);

}  // namespace wisp
