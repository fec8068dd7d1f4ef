// DCD-PSGD: workers send differences. Every worker knows its neighbours' weights exactly, because
// weights change only by the told differences.
//   x_i½ = sum_j W_ij x_j - eta g_i(x_i)          mix
//   q_i  = Q(x_i½ - x_i)                          told
//   x_i <- x_i + q_i,  d_i <- d_i + sum_j W_ij (q_j - q_i)
// `known` is x_i, and d_i = sum_j W_ij (x_j - x_i) replaces the neighbours' weights. Between steps
// the weights are x½: Q is applied when the next step begins, and forward reads x.
// Source: Tang et al. 2018, algorithm 1.
#include "distributed/gossip/gossip_method.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

class Dcd final : public GossipMethod {
 public:
  std::vector<std::string> arenas() const override { return {"pull", "known"}; }
  void start(const GossipArenas& a) override {
    parallel_for(a.stream, a.numel, CopyInto{a.x, a.own[kKnown]});
  }
  Source told(const float* x, const std::vector<float*>& own, float) const override {
    return {.gradient = x, .kept = own[kKnown], .tracks = true};
  }
  bool steps_by_what_it_tells() const override { return true; }
  void after_telling(const GossipArenas& a) override {
    parallel_for(a.stream, a.numel, CopyInto{a.own[kKnown], a.x});
  }
  void mix(const GossipArenas& a, int64_t) override {
    parallel_for(a.stream, a.numel, Pull{a.x, a.own[kPull], 1.0f});
  }
  /// A mode of W with eigenvalue l keeps (l² + omega (1 - l)²) of its square after a step, in the
  /// mean. A drawn selection that is scaled by 1 / share has omega = 1 / share - 1.
  std::string refusal(const Mixing& mixing, const Code& code, double share) const override {
    const double least = 0.5 * mixing.distance_from_identity();
    if (!code.traits().sparse || !code.variance({}) || share > least) return {};
    return concat(
        "dcd diverges with this code: values scaled by up to ", static_cast<float>(1.0 / share),
        " drive the workers apart faster than this graph brings them together; expected more "
        "than a share of ",
        static_cast<float>(least),
        " of each field to be sent, compression.unbiased = false, which does not scale the "
        "values, or choco");
  }
  std::string asks(const Mixing&, std::optional<double>) const override {
    return "dcd's theory asks for an unbiased code whose relative error is small against the "
           "spectral gap; with a stronger one it diverges, and choco may not";
  }

 private:
  enum Arena { kPull, kKnown };
};

}  // namespace

std::unique_ptr<GossipMethod> make_dcd() { return std::make_unique<Dcd>(); }

}  // namespace wisp
