// Error feedback: a policy that turns a code into a compressor.
//   none        send C(g)
//   ef          send C(e + g); the residual e is the unsent part
//   ef21        send C(g - h); h, the sum of what was sent, tracks g; result: the sum of all h
//   ef21_sgdm   ef21 with v, a moving average of the gradients, in the place of g
// The residual has the unit of the gradient, so an old residual is applied at the new learning
// rate. With compression.residual = "update" it keeps its original learning rate. With none and ef,
// compression.momentum_correction applies the optimizer's momentum on each worker before
// compression, u <- m u + g, and u takes the place of g (momentum_correction.h).
#pragma once

#include <memory>
#include <string>

#include "compression/code.h"
#include "compression/feedback_options.h"

namespace wisp {

/// A compressor with one round, or two if the code has an agreement. If the gradient of a unit is
/// not finite, it encodes zeros and keeps its state. `method` is for messages. Throws Error for a
/// momentum out of range or unknown to the feedback, with the place of its key in `places`.
/// - ef: Stich et al. 2018, algorithm 1, with the learning rate outside the residual unless
///   update_units.
/// - ef21: Richtarik et al. 2021, algorithm 2.
/// - ef21_sgdm: Fatkhullin et al. 2023, algorithm 1, with v <- m v + (1 - m) g and the optimizer's
///   momentum m. The result is divided by 1 - m, so that a learning rate has the same effect as
///   with momentum SGD. Weight decay is added to g.
/// - correction: Lin et al. 2018, section 3.2; topk with it equals dgc bit for bit. Only sparse
///   codes have masking, because other codes send part of every element.
std::unique_ptr<Compressor> with_feedback(const std::string& method, std::unique_ptr<Code> code,
                                          const FeedbackOptions& options,
                                          const Config& places = {});

/// The source of methods that learn only later which elements are sent. The residual keeps
/// everything.
struct Undecided : Source {
  Undecided() = default;
  /// The unit's gradient and its residual (the first state); zeros if the gradient is not finite.
  explicit Undecided(const Unit& unit) {
    if (!unit.finite) return;
    gradient = unit.gradient.data<float>();
    kept = unit.state->tensors[0].data<float>();
  }
  WISP_HD void sent(int64_t, float) const {}
};

/// Registers a code by name: for gossip as it is, and as a compression method with the feedback
/// `published`, unless the configuration says otherwise.
struct CodeRegistration {
  CodeRegistration(const std::string& name, const std::string& summary, CodeRegistry::Factory make,
                   Feedback published);
};

}  // namespace wisp
