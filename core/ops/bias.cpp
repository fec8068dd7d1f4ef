#include "core/ops/bias.h"

#include "core/loops/parallel_row_parts.h"
#include "core/loops/unrolled.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

template <class T>
struct AddToRows {
  struct Shared {};
  const Wide<T>* bias;
  T* y;
  int64_t columns;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    T* out = y + row * columns + begin;
    const Wide<T>* add = bias + begin;
    team.each(end - begin, [&](int64_t c) { store(out + c, wide(out[c]) + add[c]); });
  }
};

// Rows per block. A block's rows are summed in order, then the sums of blocks. Images have many
// rows but few columns for threads to share, and f32 loses fewer digits.
constexpr int64_t kRowBlock = 1024;

/// Sums of rows. An item is a block of rows and kLanes columns; its sums are in row `block` of
/// `sums`.
template <class T>
struct SumOfRows {
  static constexpr int kResidentBlocks = 3;
  struct Shared {};
  const T* dy;
  Wide<T>* sums;
  int64_t rows, columns;
  Divisor groups;  // groups of kLanes columns
  bool accumulate;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const int64_t block = groups.quotient(item);
    const int64_t first = groups.remainder(item) * parallel::kLanes;
    const int64_t width = columns - first;
    const int64_t begin = block * kRowBlock;
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    const T* from = dy + begin * columns + first;
    typename Team::template PerLane<Wide<T>> total;
    if (width >= parallel::kLanes) {
      add(
          team, from, end - begin, [](int64_t) { return true; }, total);
    } else {
      add(
          team, from, end - begin, [=](int64_t lane) { return lane < width; }, total);
    }
    team.lanes([&](int64_t lane) {
      if (lane < width) deposit(sums + block * columns + first + lane, total[lane], accumulate);
    });
  }

 private:
  /// Adds up `count` rows from `from` on, in the lanes that have a column.
  template <class Team, class Has>
  WISP_HD void add(const Team& team, const T* from, int64_t count, const Has& has,
                   typename Team::template PerLane<Wide<T>>& total) const {
    unrolled<16>(count, [&](int64_t row, auto n) {
      team.lanes([&](int64_t lane) {
        if (!has(lane)) return;
        T here[n.value];
        for (int64_t r = 0; r < n.value; ++r) here[r] = from[(row + r) * columns + lane];
        for (int64_t r = 0; r < n.value; ++r) total[lane] += wide(here[r]);
      });
    });
  }
};

template <class T>
void sum_rows_of(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& sum) {
  const int64_t rows = dy.shape().rows(), columns = dy.shape()[-1];
  const Divisor groups((columns + parallel::kLanes - 1) / parallel::kLanes);
  const int64_t blocks = rows <= kRowBlock ? 1 : (rows + kRowBlock - 1) / kRowBlock;
  const GradSlot sums =
      blocks == 1 ? sum
                  : GradSlot{Tensor({blocks, columns}, sum.into.dtype(), pool, stream.id()), false};
  parallel_small_teams(
      stream, blocks * groups.value(),
      SumOfRows<T>{dy.data<T>(), sums.into.data<Wide<T>>(), rows, columns, groups, sums.accumulate},
      rows / blocks * parallel::kLanes);
  if (blocks > 1) sum_rows_of<Wide<T>>(stream, pool, sums.into, sum);
}

}  // namespace

void check_bias(const char* op, const Variable& bias, int64_t channels, DType type) {
  if (!bias.defined()) return;
  WISP_CHECK(bias.shape() == Shape({channels}) && bias.value().dtype() == type, op, ": bias ",
             bias.shape(), " ", name_of(bias.value().dtype()), ", expected (", channels, ") ",
             name_of(type));
}

void add_bias(const Stream& stream, const Tensor& bias, const Tensor& y) {
  dispatch_activation(y.dtype(), "bias", [&]<class T>(T) {
    parallel_row_parts(stream, y.shape().rows(), bias.numel(),
                       AddToRows<T>{bias.data<Wide<T>>(), y.data<T>(), bias.numel()});
  });
}

void sum_rows(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& d_bias) {
  dispatch_activation(dy.dtype(), "bias",
                      [&]<class T>(T) { sum_rows_of<T>(stream, pool, dy, d_bias); });
}

}  // namespace wisp
