// ECD-PSGD: workers send extrapolated weights, so that the error of the neighbours' estimates falls
// with the number of updates t = 1, 2, …
//   x_{t+1} = s - eta g(x_t),  s = sum_j W_ij y_j        mix
//   z = (1 - t/2) x_t + (t/2) x_{t+1}
//   y_j <- (1 - 2/t) y_j + (2/t) Q(z_j)                  told
// `estimate` is s and changes as the y_j do. `extrapolated` is z until it has been told; it keeps
// x_t while the optimizer works. Source: Tang et al. 2018, algorithm 2.
#include "distributed/gossip/gossip_method.h"
#include "distributed/loops.h"

namespace wisp {
namespace {

/// Before: x holds x_t - eta g, z holds x_t.
struct Extrapolate {
  const float* estimate;
  float half_t;
  float* x;
  float* z;
  WISP_HD void operator()(int64_t i) const {
    const float before = z[i];
    x[i] += estimate[i] - before;
    z[i] = (1.0f - half_t) * before + half_t * x[i];
  }
};

class Ecd final : public GossipMethod {
 public:
  std::vector<std::string> arenas() const override { return {"estimate", "extrapolated"}; }
  void start(const GossipArenas& a) override {
    parallel_for(a.stream, a.numel, CopyInto{a.x, a.own[kEstimate]});
  }
  Source told(const float*, const std::vector<float*>& own, float) const override {
    return {.gradient = own[kExtrapolated]};
  }
  Intake intake(int64_t t) const override {
    const double share = 2.0 / static_cast<double>(t);
    return {.keep = 1.0 - share, .gain = share, .self = 0.0};
  }
  void after_hearing(const GossipArenas& a) override {
    parallel_for(a.stream, a.numel, CopyInto{a.x, a.own[kExtrapolated]});
  }
  void mix(const GossipArenas& a, int64_t t) override {
    parallel_for(
        a.stream, a.numel,
        Extrapolate{a.own[kEstimate], 0.5f * static_cast<float>(t), a.x, a.own[kExtrapolated]});
  }
  /// x does not follow from what is told. The workers' mean move is told with an error of omega / N
  /// of its square, and the error is part of the next move. So moves grow by this factor in every
  /// step.
  std::string refusal(const Mixing&, const Code& code, double) const override {
    constexpr int64_t kNumel = 512;
    constexpr double kMost = 1.0 / 16.0;  // ours: passes 8 bits or more
    const Field field{.slices = {{0, kNumel}}, .numel = kNumel};
    const Traits traits = code.traits();
    const bool coarse = code.variance({{&field, 1}, kNumel}).value_or(0.0) > kMost;
    if (!traits.sparse && traits.represents_zero && !coarse) return {};
    return "ecd diverges with selections, signs and coarse roundings (Koloskova et al. 2020, table "
           "1); expected fp16, bf16, or 8 bits in a short run; choco works with any code";
  }
  std::string asks(const Mixing&, std::optional<double>) const override {
    return "ecd's theory asks for an unbiased code of bounded error; biased ones (a selection "
           "without scaling, signs) and coarse ones diverge";
  }

 private:
  enum Arena { kEstimate, kExtrapolated };
};

}  // namespace

std::unique_ptr<GossipMethod> make_ecd() { return std::make_unique<Ecd>(); }

}  // namespace wisp
