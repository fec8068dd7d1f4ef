// D-PSGD: workers send the weights themselves, during forward and backward.
//   x_i <- x_i - eta g_i(x_i) + sum_j W_ij (Q(x_j) - Q(x_i))
// Source: Lian et al. 2017, algorithm 1, without Q. With Q, this form keeps the mean of the x_i
// (Carli et al. 2010); the workers cannot agree more closely than Q is exact.
#include "distributed/gossip/gossip_method.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

class Dpsgd final : public GossipMethod {
 public:
  std::vector<std::string> arenas() const override { return {"pull"}; }
  Source told(const float* x, const std::vector<float*>&, float) const override {
    return {.gradient = x};
  }
  Intake intake(int64_t) const override { return {.keep = 0.0}; }
  void mix(const GossipArenas& a, int64_t) override {
    parallel_for(a.stream, a.numel, Pull{a.x, a.own[0], 1.0f});
  }
  std::string asks(const Mixing&, std::optional<double>) const override {
    return "dpsgd compresses the weights themselves: the workers agree only as closely as the code "
           "is exact; choco and dcd compress differences";
  }
};

}  // namespace

std::unique_ptr<GossipMethod> make_dpsgd() { return std::make_unique<Dpsgd>(); }

}  // namespace wisp
