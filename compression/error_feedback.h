// Error feedback turns a code into a compressor. It is a policy over codes:
//   none        send C(g)
//   ef          send C(e + g); the residual e is what did not travel
//   ef21        send C(g - h); h, what was sent so far, tracks g; the result is the sum of all h
//   ef21_sgdm   the same with a moving average of the gradients, v, in the place of g
// The residual is in units of the gradient: an old one is applied at the new learning rate. With
// compression.residual = "update" it keeps the learning rate it came with.
// With none and ef, compression.momentum_correction applies the optimizer's momentum on each worker
// before compression, u <- m u + g, and u takes the place of g (momentum_correction.h).
#pragma once

#include <memory>
#include <string>

#include "compression/code.h"
#include "compression/feedback_options.h"

namespace wisp {

/// A compressor of one round, or two if the code agrees on something first. A unit whose gradient
/// is not finite encodes zeros and keeps what it has. Sources: ef: Stich et al. 2018, algorithm 1,
/// with the learning rate outside the residual unless update_units; ef21: Richtarik et al. 2021,
/// algorithm 2; ef21_sgdm: Fatkhullin et al. 2023, algorithm 1, with v <- m v + (1 - m) g. The
/// optimizer's momentum m is the average's; the result is divided by 1 - m, so that a learning rate
/// means what it means for momentum SGD, and weight decay joins g. correction: Lin et al. 2018,
/// section 3.2, so that topk with it is dgc, bit for bit; only sparse codes mask, as others send
/// something of every element. `method` is for messages.
std::unique_ptr<Compressor> with_feedback(const std::string& method, std::unique_ptr<Code> code,
                                          const FeedbackOptions& options);

/// Error feedback of methods that learn later what of it travels: the residual holds all.
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

/// Makes a code known by its name: as a compression method, with `published` as its feedback unless
/// the configuration says otherwise, and to gossip as it is.
struct CodeRegistration {
  CodeRegistration(const std::string& name, const std::string& summary, CodeRegistry::Factory make,
                   Feedback published);
};

}  // namespace wisp
