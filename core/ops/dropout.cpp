#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kPurpose = uint64_t{0x64726f70} << 32;  // keeps these keys apart from others

/// Which elements stay: the choice is recomputed in the backward pass, not stored. One random block
/// serves four neighbours of a row.
struct DropoutMask {
  Philox random;
  const int64_t* keys;
  int64_t features;  // elements per row
  uint32_t threshold;

  WISP_HD int64_t groups() const { return (features + 3) / 4; }
};

/// y = x · mask · scale. One index per group of four elements.
template <class T>
struct MaskAndScale {
  DropoutMask mask;
  const T* x;
  T* y;
  Wide<T> scale;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t row = i / mask.groups();
    const int64_t group = i % mask.groups();
    const Philox::Block bits = mask.random.block(static_cast<uint64_t>(mask.keys[row]) *
                                                     static_cast<uint64_t>(mask.groups()) +
                                                 static_cast<uint64_t>(group));
    for (int64_t j = 0; j < 4 && 4 * group + j < mask.features; ++j) {
      const int64_t at = row * mask.features + 4 * group + j;
      deposit(y + at, bits.word[j] >= mask.threshold ? wide(x[at]) * scale : Wide<T>(0),
              accumulate);
    }
  }
};

void mask_and_scale(const Context& context, const DropoutMask& mask, double probability,
                    const Tensor& x, const GradSlot& y) {
  dispatch_activation(x.dtype(), "dropout", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, x.shape()[0] * mask.groups(),
                 MaskAndScale<T>{mask, x.data<T>(), y.into.data<T>(),
                                 static_cast<Wide<T>>(1.0 / (1.0 - probability)), y.accumulate});
  });
}

}  // namespace

Variable dropout(const Variable& x, double probability, uint64_t layer) {
  return dropout(x, probability, layer, x.context().samples);
}

Variable dropout(const Variable& x, double probability, uint64_t layer, const Tensor& keys) {
  WISP_CHECK(probability >= 0.0 && probability < 1.0, "dropout: probability ", probability,
             ", expected a number in [0, 1)");
  Context& context = x.context();
  if (!context.training || probability == 0.0) return x;
  WISP_CHECK(x.shape().rank() > 0 && keys.defined() && keys.dtype() == DType::i64 &&
                 keys.numel() == x.shape()[0],
             "dropout: input ", x.shape(), " with ", keys.defined() ? keys.numel() : 0,
             " keys, expected an i64 for each row");

  const DropoutMask mask{
      Philox(context.seed, static_cast<uint64_t>(context.step), kPurpose ^ layer),
      keys.data<int64_t>(), x.value().numel() / x.shape()[0],
      static_cast<uint32_t>(probability * 0x1p32)};
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  mask_and_scale(context, mask, probability, x.value(), {y, false});
  // the closure holds `keys` because the mask points into it
  return record("dropout", y, {x},
                [&context, keys, mask, probability](const Tensor& dy, Inputs& in) {
                  mask_and_scale(context, mask, probability, dy, in.slot(0));
                });
}

}  // namespace wisp
