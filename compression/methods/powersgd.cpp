// PowerSGD: each gradient matrix is sent as two thin factors, found by a step of subspace iteration
// that begins where the last step ended. Per worker i of N, with gradient G_i and residual E_i:
//   M_i <- G_i + E_i
//   P_i <- M_i Q;      P <- orthonormal(sum of P_i)
//   Q_i <- M_iᵀ P;     Q <- sum of Q_i
//   Ĝ <- P Qᵀ, the result
//   E_i <- M_i - Ĝ / N      residual_form = "aggregated", the paper's code
//   E_i <- M_i - P Q_iᵀ     residual_form = "local"
// The sums are means, because gradients arrive divided by N. Both forms keep sum of E_i + Ĝ = sum
// of M_i. A worker whose gradient is not finite sends zeros and has M_i = E_i. The aggregated form
// takes its share of Ĝ from E_i too; the local form leaves E_i as it is. The aggregated form
// accounts for the rounding of the sum on a 16-bit wire. But differences between workers, E_i -
// E_j, never leave it and grow like a random walk, while the local form sends everything in the
// span of P. More power iterations repeat the two products in a step. Source: Vogels et al. 2019,
// algorithms 1 and 2. Ours: Q is also made orthonormal before each product, as in PyTorch's hook. P
// then has the same span, so Ĝ is the same, and no squares of small gradients are sent. Dependent
// columns are drawn anew; the paper's code adds 1e-8 to norms, and there a layer whose gradient was
// once zero sends nothing ever after.
#include "compression/methods/methods.h"

namespace wisp {
namespace {

class PowerSgd final : public LowRank {
 public:
  PowerSgd(const PowerSgdOptions& options, const Config& places)
      : LowRank("powersgd", static_cast<double>(options.iterations), options.matrices, places),
        options_(options) {}

  int rounds(const UnitSpec&, const StepInfo&) const override {
    return 2 * static_cast<int>(options_.iterations);
  }
  Message message(const UnitSpec& spec, const StepInfo&, int round) const override {
    return message_of(spec, factor_of(round));
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    if (round == 0) {
      take(context, unit, info);
      if (!options_.warm_start) forget(context, unit, Factor::q);
    }
    const Factor factor = factor_of(round);
    if (factor == Factor::p) orthonormalise(context, unit, info, Factor::q);
    multiply(context, unit, factor);
    send(context, unit, info, factor, outlets[0]);
    if (is_last(round) && options_.local) keep_unsent(context, unit);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const Factor factor = factor_of(round);
    receive(context, unit, factor, payloads[0]);
    if (factor == Factor::p) orthonormalise(context, unit, info, Factor::p);
    if (!is_last(round)) return;
    approximate(context, unit);
    if (!options_.local) keep_difference(context, unit, info);
  }

 private:
  static Factor factor_of(int round) { return round % 2 == 0 ? Factor::p : Factor::q; }
  bool is_last(int round) const { return round + 1 == 2 * options_.iterations; }

  PowerSgdOptions options_;
};

const CompressorRegistration powersgd_registration(
    "powersgd", "two low-rank factors, with warm start and error feedback (Vogels et al. 2019)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      PowerSgdOptions options{LowRankOptions::bind(config, setup)};
      config.bind("compression.warm_start", options.warm_start,
                  "start the subspace iteration from the last step's Q; false: from a random one");
      config.bind("compression.power_iterations", options.iterations,
                  "steps of subspace iteration, two all-reduces each");
      config.bind_choice("compression.residual_form", options.local,
                         {{"aggregated", false}, {"local", true}},
                         "part deducted from the residual: aggregated (the result over the "
                         "workers) or local (the part that this worker sent)");
      return make_powersgd(options, config);
    });

}  // namespace

std::unique_ptr<Compressor> make_powersgd(const PowerSgdOptions& options, const Config& places) {
  places.expect(0 < options.iterations && options.iterations <= 100, "compression.power_iterations",
                options.iterations, "1 to 100");
  return std::make_unique<PowerSgd>(options, places);
}

}  // namespace wisp
