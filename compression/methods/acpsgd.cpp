// ACP-SGD: alternate compressed PowerSGD. Each step sends one of the two factors, computed against
// the other factor of the step before. So one all-reduce is enough, and all encoding runs during
// backward. Per worker i of N, with gradient G_i and residual E_i:
//   M_i <- G_i + E_i
//   even updates: Q <- orthonormal(Q);  P_i <- M_i Q;    E_i <- M_i - P_i Qᵀ;  P <- sum of P_i
//   odd updates:  P <- orthonormal(P);  Q_i <- M_iᵀ P;   E_i <- M_i - P Q_iᵀ;  Q <- sum of Q_i
//   Ĝ <- P Qᵀ, the result
// The sums are means, because gradients arrive divided by N. All ranks have the same fixed factor,
// made orthonormal by the same operations. So the summed factor is linear in M_i, and sum of E_i +
// Ĝ = sum of M_i. Source: Zhang et al. 2023, the authors' code. Parity counts updates, so that
// skipped steps and resumed runs keep it. Ours: Gram-Schmidt for QR, a 16-bit wire.
#include "compression/methods/methods.h"

namespace wisp {
namespace {

class AcpSgd final : public LowRank {
 public:
  AcpSgd(const LowRankOptions& options, const Config& places)
      : LowRank("acpsgd", 0.5, options, places) {}  // a step sends P or Q

  int64_t period() const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return message_of(spec, sent(info));
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    const Factor fixed = sent(info) == Factor::p ? Factor::q : Factor::p;
    take(context, unit, info);
    orthonormalise(context, unit, info, fixed);
    multiply(context, unit, sent(info));
    send(context, unit, info, sent(info), outlets[0]);
    keep_unsent(context, unit);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    receive(context, unit, sent(info), payloads[0]);
    approximate(context, unit);
  }

 private:
  static Factor sent(const StepInfo& info) { return info.applied % 2 == 0 ? Factor::p : Factor::q; }
};

const CompressorRegistration acpsgd_registration(
    "acpsgd", "one of two low-rank factors in turn, with error feedback (Zhang et al. 2023)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      return make_acpsgd(LowRankOptions::bind(config, setup), config);
    });

}  // namespace

std::unique_ptr<Compressor> make_acpsgd(const LowRankOptions& options, const Config& places) {
  return std::make_unique<AcpSgd>(options, places);
}

}  // namespace wisp
