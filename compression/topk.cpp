// Top-k: the k largest values of each field travel with their positions, the rest stays in the
// residual. Source: Aji & Heafield 2017 (gradient dropping, by field); Stich et al. 2018.
#include "compression/error_feedback.h"
#include "compression/pack.h"
#include "compression/ratio_schedule.h"

namespace wisp {
namespace {

class TopkCode final : public Code {
 public:
  explicit TopkCode(SparseWire wire) : wire_(wire) {}

  Traits traits() const override { return {.sparse = true}; }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return {.kind = Collective::all_gather,
            .bytes = wire_.capacity(spec, info.ratio),
            .variable = true};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return wire_.scratch_bytes(spec, info.ratio);
  }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override {
    wire_.encode(
        context.stream, spec, info, [&](const Field&) { return source; }, outlet, scratch);
  }
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override {
    wire_.decode(context.stream, spec, info.ratio, payload, weight, add, into, scratch);
  }

 private:
  SparseWire wire_;
};

const CodeRegistration registration(
    "topk", "top-k values and their positions, with error feedback (Stich et al. 2018)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Code> {
      static_cast<void>(RatioSchedule(config));  // binds and checks its keys
      return std::make_unique<TopkCode>(SparseWire(config));
    },
    Feedback::ef);

}  // namespace
}  // namespace wisp
