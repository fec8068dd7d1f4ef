#include "compression/feedback_options.h"

namespace wisp {

float FeedbackOptions::gain(const StepInfo& info) const {
  const bool scaled = kind == Feedback::ef && update_units && info.last_lr > 0.0 && info.lr > 0.0;
  return static_cast<float>(scaled ? info.last_lr / info.lr : 1.0);
}

FeedbackOptions bind_feedback(Config& config, const CompressorSetup& setup, Feedback published) {
  std::string choice = "auto";
  config.bind("compression.feedback", choice,
              "error feedback: none, ef, ef21, ef21_sgdm, or auto (as the method was published)");
  FeedbackOptions options;
  if (choice == "auto") {
    options.kind = published;
  } else if (choice == "ef") {
    options.kind = Feedback::ef;
  } else if (choice == "ef21") {
    options.kind = Feedback::ef21;
  } else if (choice == "ef21_sgdm") {
    options.kind = Feedback::ef21_sgdm;
  } else {
    WISP_CHECK(choice == "none", config.where("compression.feedback"),
               ": compression.feedback is '", choice,
               "', expected auto, none, ef, ef21 or ef21_sgdm");
  }
  std::string residual = "gradient";
  config.bind("compression.residual", residual,
              "units of ef's residual: gradient (applied at the new learning rate) or update "
              "(applied at the old one)");
  WISP_CHECK(residual == "gradient" || residual == "update", config.where("compression.residual"),
             ": compression.residual is '", residual, "', expected gradient or update");
  WISP_CHECK(residual == "gradient" || options.kind == Feedback::ef,
             config.where("compression.residual"),
             ": compression.residual = \"update\" is for "
             "compression.feedback = \"ef\"");
  options.update_units = residual == "update";
  options.local = local_momentum(setup);
  return options;
}

void bind_correction(Config& config, bool sparse, FeedbackOptions& options) {
  config.bind("compression.momentum_correction", options.correction,
              "apply the optimizer's momentum on each worker, before compression");
  if (sparse)
    config.bind("compression.masking", options.masking,
                "clear the momentum of elements that were sent");
}

}  // namespace wisp
