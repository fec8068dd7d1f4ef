#include "distributed/gossip/told_unit.h"

#include "compression/slices.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

struct Keep {
  float* x;
  float factor;
  WISP_HD void operator()(int64_t i) const { x[i] = factor == 0.0f ? 0.0f : factor * x[i]; }
};

std::unique_ptr<Code> exact_code() {
  Config config;
  return CodeRegistry::instance().find("code", "none").make(config, {.alone = true});
}

std::vector<float*> arenas_of(const Unit& unit) {
  std::vector<float*> arenas;
  for (const Tensor& arena : unit.state->tensors) arenas.push_back(arena.data<float>());
  return arenas;
}

}  // namespace

ToldUnit::ToldUnit(std::shared_ptr<const GossipMethod> method, std::shared_ptr<const Mixing> mixing,
                   std::shared_ptr<const Code> code, bool guard)
    : method_(std::move(method)),
      mixing_(std::move(mixing)),
      code_(std::move(code)),
      exact_(exact_code()),
      guard_(guard) {}

Traits ToldUnit::traits() const {
  const Traits code = code_->traits();
  return {.scopes = code.scopes, .dense_1d = false, .represents_zero = code.represents_zero};
}

std::vector<StateSpec> ToldUnit::state(const UnitSpec&, int) const {
  std::vector<StateSpec> specs;
  const ValueCheck any;  // the weights of a run that diverges grow beyond every bound
  for (const std::string& name : method_->arenas()) specs.push_back({.name = name, .check = any});
  return specs;
}

int64_t ToldUnit::scratch_bytes(const UnitSpec& spec, const StepInfo& info) const {
  return code_for(spec, info).scratch_bytes(spec, info);
}

Message ToldUnit::message(const UnitSpec& spec, const StepInfo& info, int) const {
  const Message alone = code_for(spec, info).message(spec, info);
  return {.kind = Collective::neighbours, .bytes = alone.bytes, .variable = alone.variable};
}

void ToldUnit::encode(Context& context, Unit& unit, const StepInfo& info, int,
                      std::span<const Outlet> outlets) {
  const Code& code = code_for(unit.spec, info);
  const auto scale = static_cast<float>(scale_of(code, unit.spec));
  code.encode(context, method_->told(unit.weight.data<float>(), arenas_of(unit), scale), unit.spec,
              info, outlets[0], unit.scratch);
}

void ToldUnit::decode(Context& context, Unit& unit, const StepInfo& info, int,
                      std::span<const Payload> payloads) {
  const Code& code = code_for(unit.spec, info);
  const Intake intake = method_->intake(info.applied);
  const Tensor& arena = unit.state->tensors[0];
  if (intake.keep != 1.0)
    parallel_for_ranges(context.stream, ranges_of(unit.spec),
                        Keep{arena.data<float>(), static_cast<float>(intake.keep)});
  const double gain = intake.gain * scale_of(code, unit.spec);
  for (const Payload& payload : payloads) {
    const double weight =
        mixing_->weight(info.rank, payload.from) - (payload.from == info.rank ? intake.self : 0.0);
    code.decode(context, payload, static_cast<float>(gain * weight), true, unit.spec, info, arena,
                unit.scratch);
  }
}

/// The code of this step, by warm-up and guard. It may change from step to step, because the
/// estimates of the neighbours stay valid.
const Code& ToldUnit::code_for(const UnitSpec& spec, const StepInfo& info) const {
  if (code_->traits().sparse && info.ratio >= 1.0) return *exact_;
  return guard_ && sends_more_than_exact(code_->message(spec, info), spec) ? *exact_ : *code_;
}

/// The factor 1 / (1 + omega) makes an unbiased code with E|Q(x) - x|² <= omega |x|² a contraction
/// (Koloskova et al. 2019, section 3).
double ToldUnit::scale_of(const Code& code, const UnitSpec& spec) const {
  const std::optional<double> variance = code.variance(spec);
  return method_->contracts() && variance ? 1.0 / (1.0 + *variance) : 1.0;
}

bool sends_more_than_exact(const Message& message, const UnitSpec& spec) {
  const int64_t size_word = message.variable ? 4 : 0;
  return message.bytes + size_word > spec.numel * size_of(DType::f32);
}

}  // namespace wisp
