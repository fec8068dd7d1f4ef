#include "core/ops/mixup.h"

#include "core/elementary.h"
#include "core/loops/parallel.h"
#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kMixupPurpose = uint64_t{0x6d697875} << 32;  // differs from other uses of keys

/// A logarithm of a uniform number in (0, 1).
WISP_HD float log_uniform(uint32_t bits) {
  return logarithm((static_cast<float>(bits >> 9) + 0.5f) * 1.1920928955078125e-7f);
}

/// Draws the larger of λ and 1 - λ, λ ~ Beta(alpha, alpha), for alpha <= 1. With uniform u and v,
/// x = u^(1 / alpha) and y = v^(1 / alpha), λ = x / (x + y) has that distribution once x + y <= 1.
/// At least half of the tries get there. Source: Jöhnk 1964.
struct DrawShare {
  static constexpr uint64_t kTries = 64;
  Philox random;
  const int32_t* labels;
  const int64_t* keys;
  int64_t rows;
  float inverse_alpha;
  float* share;

  WISP_HD float larger_part(uint64_t key) const {
    float apart = 0.0f;  // |log x - log y|
    for (uint64_t i = 0; i < kTries; ++i) {
      const Philox::Block words = random.block(key * kTries + i);
      const float log_x = log_uniform(words.word[0]) * inverse_alpha;
      const float log_y = log_uniform(words.word[1]) * inverse_alpha;
      apart = log_x < log_y ? log_y - log_x : log_x - log_y;
      if (exponential(log_x) + exponential(log_y) <= 1.0f) break;
    }
    return 1.0f / (1.0f + exponential(-apart));
  }
  WISP_HD void operator()(int64_t row) const {
    const int64_t other = neighbour_of(row, rows);
    const bool alone = other == row || labels[row] == -1 || labels[other] == -1;
    share[row] = alone ? 1.0f : larger_part(static_cast<uint64_t>(keys[row < other ? row : other]));
  }
};

template <class T>
struct MixRows {
  struct Shared {};
  const T* x;
  const float* share;
  T* y;
  int64_t rows, columns;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const T* own = x + row * columns + begin;
    const T* other = x + neighbour_of(row, rows) * columns + begin;
    T* out = y + row * columns + begin;
    const Wide<T> part = share[row], rest = Wide<T>(1) - part;
    team.each(end - begin,
              [&](int64_t c) { store(out + c, part * wide(own[c]) + rest * wide(other[c])); });
  }
};

}  // namespace

void check_shares(const char* op, const Tensor& shares, int64_t rows) {
  WISP_CHECK(shares.shape() == Shape({rows}) && shares.dtype() == DType::f32, op, ": shares are ",
             shares.shape(), " ", name_of(shares.dtype()), ", expected (", rows, ") f32");
}

Tensor mixup_shares(const Context& context, const Tensor& labels, double alpha) {
  WISP_CHECK(alpha > 0.0 && alpha <= 1.0, "mixup: alpha is ", alpha,
             ", expected more than 0 and at most 1");
  WISP_CHECK(labels.shape().rank() == 1 && labels.dtype() == DType::i32, "mixup: labels are ",
             labels.shape(), " ", name_of(labels.dtype()), ", expected (N) i32");
  const Tensor& keys = context.samples;
  WISP_CHECK(keys.defined() && keys.shape() == labels.shape() && keys.dtype() == DType::i64,
             "mixup: ", keys.defined() ? keys.numel() : 0, " keys for ", labels.numel(),
             " rows, expected an i64 for each");
  const Tensor shares = context.empty(labels.shape(), DType::f32);
  parallel_for(context.stream, labels.numel(),
               DrawShare{Philox(context.seed, static_cast<uint64_t>(context.step), kMixupPurpose),
                         labels.data<int32_t>(), keys.data<int64_t>(), labels.numel(),
                         static_cast<float>(1.0 / alpha), shares.data<float>()});
  return shares;
}

Tensor mix_neighbours(const Context& context, const Tensor& x, const Tensor& shares) {
  WISP_CHECK(x.shape().rank() > 0, "mix_neighbours: x is ", x.shape(), ", expected (N, …)");
  const int64_t rows = x.shape()[0];
  check_shares("mix_neighbours", shares, rows);
  const Tensor mixed = context.empty(x.shape(), x.dtype());
  if (x.numel() == 0) return mixed;
  const int64_t columns = x.numel() / rows;
  dispatch_activation(x.dtype(), "mix_neighbours", [&]<class T>(T) {
    parallel_row_parts(
        context.stream, rows, columns,
        MixRows<T>{x.data<T>(), shares.data<float>(), mixed.data<T>(), rows, columns});
  });
  return mixed;
}

}  // namespace wisp
