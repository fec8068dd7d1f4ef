#include "core/ops/bias.h"

#include "core/loops/parallel.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// One index per row.
template <class T>
struct AddToRows {
  const Wide<T>* bias;
  T* y;
  int64_t columns;
  WISP_HD void operator()(int64_t row) const {
    T* out = y + row * columns;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) store(out + c, wide(out[c]) + bias[c]);
  }
};

constexpr int kColumnGroup = 16;  // columns summed side by side: whole cache lines, whole vectors
// Rows summed one after another. The sums of such blocks are summed in turn: an image has a row for
// each position but few columns to share among threads, and f32 loses less.
constexpr int64_t kRowBlock = 1024;

/// One index per group of columns of a block of rows, whose sums are a row of `sums`.
template <class T>
struct SumOfRows {
  const T* dy;
  Wide<T>* sums;
  int64_t rows, columns, groups;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t block = i / groups;
    const int64_t first = i % groups * kColumnGroup;
    const int64_t rest = columns - first;
    const int width = rest < kColumnGroup ? static_cast<int>(rest) : kColumnGroup;
    const int64_t begin = block * kRowBlock;
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    Wide<T> total[kColumnGroup] = {};
    for (int64_t row = begin; row < end; ++row) {
      for (int c = 0; c < width; ++c) total[c] += wide(dy[row * columns + first + c]);
    }
    for (int c = 0; c < width; ++c)
      deposit(sums + block * columns + first + c, total[c], accumulate);
  }
};

template <class T>
void sum_rows_of(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& sum) {
  const int64_t rows = dy.shape().rows(), columns = dy.shape()[-1];
  const int64_t groups = (columns + kColumnGroup - 1) / kColumnGroup;
  const int64_t blocks = rows <= kRowBlock ? 1 : (rows + kRowBlock - 1) / kRowBlock;
  const GradSlot sums =
      blocks == 1 ? sum
                  : GradSlot{Tensor({blocks, columns}, sum.into.dtype(), pool, stream.id()), false};
  parallel_for(
      stream, blocks * groups,
      SumOfRows<T>{dy.data<T>(), sums.into.data<Wide<T>>(), rows, columns, groups, sums.accumulate},
      rows / blocks * kColumnGroup);
  if (blocks > 1) sum_rows_of<Wide<T>>(stream, pool, sums.into, sum);
}

}  // namespace

void check_bias(const char* op, const Variable& bias, int64_t channels, DType type) {
  if (!bias.defined()) return;
  WISP_CHECK(bias.shape() == Shape({channels}) && bias.value().dtype() == type, op, ": bias ",
             bias.shape(), " ", name_of(bias.value().dtype()), ", expected (", channels, ") ",
             name_of(type));
}

void add_bias(const Context& context, const Tensor& bias, const Tensor& y) {
  dispatch_activation(y.dtype(), "bias", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.shape().rows(),
                 AddToRows<T>{bias.data<Wide<T>>(), y.data<T>(), bias.numel()}, bias.numel());
  });
}

void sum_rows(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& d_bias) {
  dispatch_activation(dy.dtype(), "bias",
                      [&](auto zero) { sum_rows_of<decltype(zero)>(stream, pool, dy, d_bias); });
}

}  // namespace wisp
