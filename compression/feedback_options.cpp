#include "compression/feedback_options.h"

#include <optional>

namespace wisp {

float FeedbackOptions::gain(const StepInfo& info) const {
  const bool scaled = kind == Feedback::ef && update_units && info.last_lr > 0.0 && info.lr > 0.0;
  return static_cast<float>(scaled ? info.last_lr / info.lr : 1.0);
}

FeedbackOptions bind_feedback(Config& config, const CompressorSetup& setup, Feedback published) {
  FeedbackOptions options;
  std::optional<Feedback> kind;
  config.bind_choice("compression.feedback", kind,
                     {{"auto", std::nullopt},
                      {"none", Feedback::none},
                      {"ef", Feedback::ef},
                      {"ef21", Feedback::ef21},
                      {"ef21_sgdm", Feedback::ef21_sgdm}},
                     "error feedback: none, ef, ef21, ef21_sgdm, or auto (as the method was "
                     "published)");
  options.kind = kind.value_or(published);
  config.bind_choice("compression.residual", options.update_units,
                     {{"gradient", false}, {"update", true}},
                     "units of ef's residual: gradient (applied at the new learning rate) or "
                     "update (applied at the old one)");
  WISP_CHECK(!options.update_units || options.kind == Feedback::ef,
             config.where("compression.residual"),
             ": compression.residual = \"update\" is for compression.feedback = \"ef\"");
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
