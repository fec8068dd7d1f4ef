// The options of error feedback (error_feedback.h). A value; any thread.
#pragma once

#include "compression/momentum_correction.h"

namespace wisp {

enum class Feedback { none, ef, ef21, ef21_sgdm };

struct FeedbackOptions {
  Feedback kind = Feedback::none;
  bool update_units = false;  // with ef: scale the residual by the previous learning rate / the
                              // current one
  bool correction = false;    // momentum correction; with none and ef
  bool masking = true;        // with correction of a sparse code: u <- 0 where an element is sent
  LocalMomentum local;        // with ef21_sgdm or correction

  /// Factor of ef's residual in a step, also in a step without a usable gradient.
  float gain(const StepInfo& info) const;
};

/// Binds compression.feedback and, for ef, compression.residual. The value "auto" selects
/// `published`, the method's own choice.
FeedbackOptions bind_feedback(Config& config, const CompressorSetup& setup, Feedback published);
/// Binds compression.momentum_correction and, for codes that leave elements out, masking.
void bind_correction(Config& config, bool sparse, FeedbackOptions& options);

}  // namespace wisp
