#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kDropoutPurpose = uint64_t{0x64726f70} << 32;  // differs from other uses of keys

/// The choice of kept elements. The backward pass computes it again instead of storing it. One
/// random block serves four neighbours of a row.
struct DropoutMask {
  Philox random;
  const int64_t* keys;
  Divisor key_count;  // divides the number of rows
  int64_t features;   // elements per row
  uint32_t threshold;

  WISP_HD int64_t groups() const { return (features + 3) / 4; }
  /// The first block of a row.
  WISP_HD uint64_t first_block(int64_t row) const {
    return static_cast<uint64_t>(keys[key_count.remainder(row)]) * static_cast<uint64_t>(groups());
  }
};

/// Computes y = x · mask · scale.
template <class T>
struct MaskAndScale {
  static constexpr int kGroups = 16;  // groups whose bits are drawn together
  struct Shared {
    uint32_t bits[4 * kGroups];
  };
  DropoutMask mask;
  const T* x;
  T* y;
  Wide<T> scale;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared& shared) const {
    const uint64_t first_block = mask.first_block(row);
    for (int64_t at = begin; at < end; at += 4 * kGroups) {
      const uint64_t group = first_block + static_cast<uint64_t>(at / 4);
      team.each(kGroups, [&](int64_t g) {
        const Philox::Block block = mask.random.block(group + static_cast<uint64_t>(g));
        for (int j = 0; j < 4; ++j) shared.bits[4 * g + j] = block.word[j];
      });
      const int64_t first = row * mask.features + at;
      const int64_t rest = end - at;
      team.each(rest < 4 * kGroups ? rest : 4 * kGroups, [&](int64_t j) {
        const Wide<T> kept = wide(x[first + j]) * scale;
        deposit(y + first + j, shared.bits[j] >= mask.threshold ? kept : Wide<T>(0), accumulate);
      });
    }
  }
};

void mask_and_scale(const Context& context, const DropoutMask& mask, double probability,
                    const Tensor& x, const GradSlot& y) {
  dispatch_activation(x.dtype(), "dropout", [&]<class T>(T) {
    parallel_row_parts(
        context.stream, x.shape()[0], mask.features,
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
                 keys.numel() > 0 && x.shape()[0] % keys.numel() == 0,
             "dropout: input ", x.shape(), " with ", keys.defined() ? keys.numel() : 0,
             " keys, expected an i64 for each row, or so many that they divide the rows");

  const DropoutMask mask{
      Philox(context.seed, static_cast<uint64_t>(context.step), kDropoutPurpose ^ layer),
      keys.data<int64_t>(), Divisor(keys.numel()), x.value().numel() / x.shape()[0],
      static_cast<uint32_t>(probability * 0x1p32)};
  const Tensor y = context.empty(x.shape(), x.value().dtype());
  mask_and_scale(context, mask, probability, x.value(), {y, false});
  // the closure owns `keys` because the mask points into it
  return record("dropout", y, {x},
                [&context, keys, mask, probability](const Tensor& dy, Inputs& in) {
                  mask_and_scale(context, mask, probability, dy, in.slot(0));
                });
}

}  // namespace wisp
