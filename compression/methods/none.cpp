// "none": the method leaves gradients dense, all-reduced in place; the code sends 32-bit numbers
// exactly.
#include "compression/code.h"
#include "compression/slices.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

struct EncodeExact {
  Source source;
  int64_t offset;
  float* out;
  WISP_HD void operator()(int64_t i) const {
    out[i] = source.take(offset + i);
    source.sent(offset + i, out[i]);
  }
};

struct DecodeExact {
  const float* in;
  float weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t i) const {
    const float value = weight * in[i];
    into[i] = add ? into[i] + value : value;
  }
};

class ExactCode final : public Code {
 public:
  Traits traits() const override { return {.dense_1d = false, .clipping = Clipping::anywhere}; }
  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_reduce, .dtype = DType::f32, .bytes = bytes(spec)};
  }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo&,
              const Outlet& outlet, std::byte*) const override {
    auto* out = reinterpret_cast<float*>(outlet.data);
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      parallel_for(context.stream, slice.numel, EncodeExact{source, slice.offset, out});
      out += slice.numel;
    });
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo&, Tensor into, std::byte*) const override {
    WISP_CHECK(payload.bytes == bytes(spec), "exact numbers: the payload of rank ", payload.from,
               " has ", payload.bytes, " bytes, expected ", bytes(spec));
    const auto* in = reinterpret_cast<const float*>(payload.data);
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      parallel_for(context.stream, slice.numel,
                   DecodeExact{in, weight, add, into.data<float>() + slice.offset});
      in += slice.numel;
    });
  }

 private:
  static int64_t bytes(const UnitSpec& spec) { return spec.numel * size_of(DType::f32); }
};

const CompressorRegistration method("none", "dense: all-reduce of the uncompressed gradients",
                                    [](Config&, const CompressorSetup&) {
                                      return std::unique_ptr<Compressor>();
                                    });

const Registration<Code, Config&, const CompressorSetup&> code(
    "none", "exact 32-bit numbers", [](Config&, const CompressorSetup&) -> std::unique_ptr<Code> {
      return std::make_unique<ExactCode>();
    });

}  // namespace
}  // namespace wisp
