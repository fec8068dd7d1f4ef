// CHOCO-SGD: workers send the differences to the neighbours' estimates, and lost parts of them
// later.
//   x_i <- x_i - eta g_i(x_i) + gamma d_i,  d_i = sum_j W_ij (y_j - y_i)     mix
//   q_i = Q(x_i - y_i);  y_i <- y_i + q_i;  d_i <- d_i + sum_j W_ij (q_j - q_i)   told
// `known` is y_i (x̂_i in the paper); d_i replaces the neighbours' estimates. q travels during the
// next forward and backward. Source: Koloskova et al. 2020 (ICLR), algorithm 1, memory-efficient
// form. Ours: y starts at the common initial weights, not at 0.

#include <algorithm>

#include "distributed/gossip/gossip_method.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

class Choco final : public GossipMethod {
 public:
  explicit Choco(double step) : step_(static_cast<float>(step)) {}

  std::vector<std::string> arenas() const override { return {"pull", "known"}; }
  void start(const GossipArenas& a) override {
    parallel_for(a.stream, a.numel, CopyInto{a.x, a.own[kKnown]});
  }
  Source told(const float* x, const std::vector<float*>& own, float scale) const override {
    return {.gradient = x, .kept = own[kKnown], .gain = scale, .tracks = true};
  }
  bool contracts() const override { return true; }
  void mix(const GossipArenas& a, int64_t) override {
    parallel_for(a.stream, a.numel, Pull{a.x, a.own[kPull], step_});
  }
  std::string asks(const Mixing& mixing, std::optional<double> delta) const override {
    if (!delta) return "choco works with any code, if gossip.consensus_step is small enough";
    return concat("choco is proven to converge with a gossip.consensus_step of ",
                  static_cast<float>(choco_theory_step(mixing, *delta)),
                  " here; much larger ones work, this run takes ", step_);
  }

 private:
  enum Arena { kPull, kKnown };

  float step_;
};

}  // namespace

double choco_usual_step(std::optional<double> delta, bool drawn) {
  if (!delta) return 0.5;
  if (*delta == 1.0) return 1.0;
  return drawn ? 0.5 * *delta : std::min(0.5, 3.0 * *delta);
}

std::unique_ptr<GossipMethod> make_choco(double step) { return std::make_unique<Choco>(step); }

}  // namespace wisp
