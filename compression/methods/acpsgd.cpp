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

constexpr double kExchanges = 0.5;  // a step sends P or Q

class AcpSgd final : public Compressor {
 public:
  explicit AcpSgd(LowRank matrices) : matrices_(std::move(matrices)) {}

  Traits traits() const override {
    return {.scopes = {Scope::layer}, .clipping = matrices_.clipping()};
  }
  std::string refusal(const Field& field) const override {
    return matrices_.refusal(field, kExchanges);
  }
  std::string remark(const UnitSpec& spec) const override {
    return matrices_.remark(spec, kExchanges);
  }
  bool started(const StepInfo& info) const override { return matrices_.started(info); }
  std::vector<StateSpec> state(const UnitSpec& spec, int) const override {
    return matrices_.state(spec);
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return matrices_.scratch_bytes(spec);
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  int64_t period() const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return matrices_.message(spec, sent(info));
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    const Factor fixed = sent(info) == Factor::p ? Factor::q : Factor::p;
    matrices_.take(context, unit, info);
    matrices_.orthonormalise(context, unit, info, fixed);
    matrices_.multiply(context, unit, sent(info));
    matrices_.send(context, unit, info, sent(info), outlets[0]);
    matrices_.keep_unsent(context, unit);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    matrices_.receive(context, unit, sent(info), payloads[0]);
    matrices_.approximate(context, unit);
  }

  void release(Context& context, Unit& unit, const StepInfo& info) override {
    matrices_.release(context, unit, info);
  }

 private:
  static Factor sent(const StepInfo& info) { return info.applied % 2 == 0 ? Factor::p : Factor::q; }

  LowRank matrices_;
};

const CompressorRegistration acpsgd_registration(
    "acpsgd", "one of two low-rank factors in turn, with error feedback (Zhang et al. 2023)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      return make_acpsgd(LowRankOptions::bind(config, setup), config);
    });

}  // namespace

std::unique_ptr<Compressor> make_acpsgd(const LowRankOptions& options, const Config& places) {
  return std::make_unique<AcpSgd>(LowRank("acpsgd", options, places));
}

}  // namespace wisp
