// A gossip method as its paper writes it: worker i keeps weights x_i of its own, tells its
// neighbours Q of something, and lets what it heard pull x_i towards theirs. W is the mixing
// matrix. Gossip (gossip.h) does the rest. All calls come from the comm thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compression/code.h"
#include "distributed/gossip/mixing.h"

namespace wisp {

/// A worker's weights and a method's arenas, flat, padding included.
struct GossipArenas {
  const Stream& stream;
  int64_t numel = 0;
  float* x = nullptr;
  std::vector<float*> own;  // in the order of GossipMethod::arenas()
};

/// What becomes of the messages Q_j of the neighbours and the worker itself (j = i):
///   arena 0  <-  keep · arena 0  +  gain · sum_j (W_ij - [j = i] self) Q_j
struct Intake {
  double keep = 1.0, gain = 1.0, self = 1.0;
};

class GossipMethod {
 public:
  virtual ~GossipMethod() = default;
  /// The names of its arenas, which begin as zeros.
  virtual std::vector<std::string> arenas() const = 0;
  /// No update has been made: all workers have the same weights, and know it.
  virtual void start(const GossipArenas&) {}

  /// What Q is applied to. An unbiased Q is made a contraction by `scale`, if contracts().
  virtual Source told(const float* x, const std::vector<float*>& own, float scale) const = 0;
  virtual bool contracts() const { return false; }
  /// Whether x follows from what was told, so that forward must wait for it.
  virtual bool steps_by_what_it_tells() const { return false; }
  /// Everything has been encoded; only if steps_by_what_it_tells().
  virtual void after_telling(const GossipArenas&) {}
  /// Of the messages that tell of update t, from 1.
  virtual Intake intake(int64_t t) const = 0;
  /// Everything has been heard; x is as forward reads it.
  virtual void after_hearing(const GossipArenas&) {}
  /// x is x_t moved by the optimizer's update t; what was heard joins.
  virtual void mix(const GossipArenas&, int64_t t) = 0;

  /// Why a code, which keeps at least `share` of each field, makes it diverge; empty if that is not
  /// known of it.
  virtual std::string refusal(const Mixing&, const Code&, double /*share*/) const { return {}; }
  /// What its theory asks of W and of a Q that is not exact, for the log. E|Q(x) - x|² <= (1 -
  /// delta) |x|², if that is known.
  virtual std::string asks(const Mixing& mixing, std::optional<double> delta) const = 0;
};

std::unique_ptr<GossipMethod> make_dpsgd();
std::unique_ptr<GossipMethod> make_dcd();
std::unique_ptr<GossipMethod> make_ecd();
/// `step` is gamma, in (0, 1].
std::unique_ptr<GossipMethod> make_choco(double step);
/// A gamma that works: 1 for an exact Q (delta = 1); 0.5, as in the authors' script, if delta is
/// not known. For a selection ours, proportional to delta as the proven one is: of the largest, 3
/// delta up to 0.5; of drawn elements, of which some are not told for long, delta / 2. Workers on
/// rings of 4 to 16 that make random steps are least apart at about 1.3 times that, and part
/// exponentially from about twice that on.
double choco_usual_step(std::optional<double> delta, bool drawn);

}  // namespace wisp
