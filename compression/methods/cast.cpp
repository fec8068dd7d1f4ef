// Casts to a number format of the wire: gradients travel as IEEE half or bfloat16, and are summed
// in f32 in rank order and rounded once. This halves the bytes. fp16 ends at 65504; bf16 keeps
// f32's range with 8 bits of precision. By default there is no error feedback, because the rounding
// error is unbiased. f32, the code of "none", is exact.
#include <limits>
#include <type_traits>

#include "compression/methods/methods.h"
#include "compression/slices.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

template <class T>
struct EncodeCast {
  Source source;
  int64_t offset;
  float most;
  T* out;
  WISP_HD void operator()(int64_t i) const {
    const T value = to_wire<T>(within(most, source.take(offset + i)));
    assign(out + i, value);
    source.sent(offset + i, static_cast<float>(value));
  }
};

/// Encoding without a residual: short enough to be vectorised for Half.
template <class T>
struct EncodePlain {
  const float* gradient;
  float most;
  T* out;
  WISP_HD void operator()(int64_t i) const {
    assign(out + i, to_wire<T>(within(most, gradient[i])));
  }
};

template <class T>
struct DecodeCast {
  const T* in;
  float weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t i) const {
    const float value = weight * static_cast<float>(in[i]);
    into[i] = add ? into[i] + value : value;
  }
};

/// T is Half, BFloat16, or float, which is exact.
template <class T>
class CastCode final : public Code {
  static constexpr bool kExact = std::is_same_v<T, float>;
  static constexpr const char* kName = kExact ? "exact numbers" : "cast";

 public:
  Traits traits() const override { return {.dense_1d = false, .clipping = Clipping::anywhere}; }
  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_reduce, .dtype = dtype_of<T>::value, .bytes = bytes(spec)};
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte*) const override {
    outlet.expect(kName, bytes(spec));
    T* out = reinterpret_cast<T*>(outlet.data);
    const float most =
        kExact ? std::numeric_limits<float>::infinity() : largest_summand<T>(info.summands);
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      if (source.gradient && !source.kept) {
        parallel_for(context.stream, slice.numel,
                     EncodePlain<T>{source.gradient + slice.offset, most, out});
      } else {
        parallel_for(context.stream, slice.numel, EncodeCast<T>{source, slice.offset, most, out});
      }
      out += slice.numel;
    });
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo&, Tensor into, std::byte*) const override {
    payload.expect(kName, bytes(spec));
    const T* in = reinterpret_cast<const T*>(payload.data);
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      parallel_for(context.stream, slice.numel,
                   DecodeCast<T>{in, weight, add, into.data<float>() + slice.offset});
      in += slice.numel;
    });
  }

 private:
  static int64_t bytes(const UnitSpec& spec) { return spec.numel * size_of(dtype_of<T>::value); }
};

const CodeRegistration fp16(
    "fp16", "cast to IEEE half precision, summed in f32",
    [](Config&, const CompressorSetup&) { return make_fp16(); }, Feedback::none);
const CodeRegistration bf16(
    "bf16", "cast to bfloat16, summed in f32",
    [](Config&, const CompressorSetup&) { return make_bf16(); }, Feedback::none);

}  // namespace

std::unique_ptr<Code> make_exact() { return std::make_unique<CastCode<float>>(); }
std::unique_ptr<Code> make_fp16() { return std::make_unique<CastCode<Half>>(); }
std::unique_ptr<Code> make_bf16() { return std::make_unique<CastCode<BFloat16>>(); }

}  // namespace wisp
