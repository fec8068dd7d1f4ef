// A gossip method as in its paper: worker i keeps its own weights x_i and sends a quantity,
// compressed by a code Q, to its neighbours. Their messages pull x_i towards their weights. W is
// the mixing matrix. Gossip (gossip.h) does the rest. All calls come from the comm thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compression/code.h"
#include "distributed/gossip/mixing.h"

namespace wisp {

/// A worker's weights and a method's arenas, flat, including padding.
struct GossipArenas {
  const Stream& stream;
  int64_t numel = 0;
  float* x = nullptr;
  std::vector<float*> own;  // in the order of GossipMethod::arenas()
};

/// The use of the messages Q_j of the neighbours and of the worker itself (j = i):
///   arena 0  <-  keep · arena 0  +  gain · sum_j (W_ij - [j = i] self) Q_j
struct Intake {
  double keep = 1.0, gain = 1.0, self = 1.0;
};

class GossipMethod {
 public:
  virtual ~GossipMethod() = default;
  /// The names of the method's arenas, which begin as zeros.
  virtual std::vector<std::string> arenas() const = 0;
  /// Called before the first update. All workers have the same weights, and each knows that.
  virtual void start(const GossipArenas&) {}

  /// The quantity to which Q is applied. If contracts(), `scale` makes an unbiased Q a contraction.
  virtual Source told(const float* x, const std::vector<float*>& own, float scale) const = 0;
  /// Whether the method needs a contraction, to which told() scales an unbiased code.
  virtual bool contracts() const { return false; }
  /// Whether x is set by the message that the worker sends: forward waits for its encoding.
  virtual bool steps_by_what_it_tells() const { return false; }
  /// Called when everything is encoded; only if steps_by_what_it_tells().
  virtual void after_telling(const GossipArenas&) {}
  /// The intake of the messages about update t; t counts from 1.
  virtual Intake intake(int64_t /*t*/) const { return {}; }
  /// Called when all messages are decoded. x holds the weights that forward reads.
  virtual void after_hearing(const GossipArenas&) {}
  /// Called after the optimizer's update t, which moved x from x_t. Applies what was heard to x.
  virtual void mix(const GossipArenas&, int64_t t) = 0;

  /// Reason why the method diverges with a code that keeps at least `share` of each field; empty if
  /// none is known.
  virtual std::string refusal(const Mixing&, const Code&, double /*share*/) const { return {}; }
  /// A line for the log: the requirements of the method's theory on W and on an inexact Q. E|Q(x) -
  /// x|² <= (1 - delta) |x|² if delta is known.
  virtual std::string asks(const Mixing& mixing, std::optional<double> delta) const = 0;
};

std::unique_ptr<GossipMethod> make_dpsgd();
std::unique_ptr<GossipMethod> make_dcd();
std::unique_ptr<GossipMethod> make_ecd();
/// `step` is gamma, in (0, 1].
std::unique_ptr<GossipMethod> make_choco(double step);
/// A gamma that works: 1 for an exact Q (delta = 1); 0.5, as in the authors' script, if delta is
/// not known. For selections our gamma is proportional to delta, as the proven one is. It is 3
/// delta up to 0.5 if the largest elements are told, and delta / 2 if elements are drawn, because
/// some are then not told for long. With workers on rings of 4 to 16 that make random steps,
/// distances are smallest at about 1.3 times this gamma, and grow exponentially from about twice
/// this gamma on.
double choco_usual_step(std::optional<double> delta, bool drawn);

}  // namespace wisp
