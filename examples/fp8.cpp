// Gradients as 8-bit floats (E5M2, the upper byte of an IEEE half). The residual keeps the rest.
// Source of the format: Micikevicius et al. 2022, "FP8 formats for deep learning".
#include "compression/error_feedback.h"
#include "compression/wire_value.h"
#include "core/loops/parallel.h"

namespace wisp::fp8 {

struct Encode {
  Source source;
  int64_t offset;
  uint8_t* out;
  WISP_HD void operator()(int64_t i) const {
    Half half = to_wire<Half>(source.take(offset + i));
    half.bits &= 0xff00u;
    out[i] = static_cast<uint8_t>(half.bits >> 8);
    source.sent(offset + i, static_cast<float>(half));
  }
};

struct Decode {
  const uint8_t* in;
  float weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t i) const {
    Half half;
    half.bits = static_cast<uint16_t>(in[i] << 8);
    into[i] = (add ? into[i] : 0.0f) + weight * static_cast<float>(half);
  }
};

class Fp8 final : public Code {
  Traits traits() const override { return {.dense_1d = false}; }
  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_gather, .bytes = spec.numel};
  }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo&,
              const Outlet& outlet, std::byte*) const override {
    auto* out = reinterpret_cast<uint8_t*>(outlet.data);
    for (const Field& field : spec.fields)
      for (const Slice& slice : field.slices) {
        parallel_for(context.stream, slice.numel, Encode{source, slice.offset, out});
        out += slice.numel;
      }
  }
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo&, Tensor into, std::byte*) const override {
    WISP_CHECK(payload.bytes == spec.numel, "fp8: ", payload.bytes, " bytes, not ", spec.numel);
    const auto* in = reinterpret_cast<const uint8_t*>(payload.data);
    for (const Field& field : spec.fields)
      for (const Slice& slice : field.slices) {
        parallel_for(context.stream, slice.numel,
                     Decode{in, weight, add, into.data<float>() + slice.offset});
        in += slice.numel;
      }
  }
};

std::unique_ptr<Code> make(Config&, const CompressorSetup&) { return std::make_unique<Fp8>(); }

const CodeRegistration registration("fp8", "8-bit floats with error feedback", make, Feedback::ef);

}  // namespace wisp::fp8
