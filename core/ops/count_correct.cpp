#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/loss.h"

namespace wisp {
namespace {

/// Whether the label is among the `most` likeliest classes.
template <class T>
struct CorrectRows {
  using Value = int64_t;
  const T* logits;
  const int32_t* labels;
  int64_t classes, most;
  WISP_HD int64_t identity() const { return 0; }
  WISP_HD int64_t map(int64_t row) const {
    const int64_t label = labels[row];
    if (label < 0 || label >= classes) return 0;
    const T* x = logits + row * classes;
    int64_t ahead = 0;  // a NaN is ahead of every label
    for (int64_t c = 0; c < label; ++c) ahead += !(x[c] < x[label]);
    for (int64_t c = label + 1; c < classes; ++c) ahead += !(x[c] <= x[label]);
    return ahead < most;
  }
  WISP_HD int64_t combine(int64_t a, int64_t b) const { return a + b; }
};

struct LabelledRows {
  using Value = int64_t;
  const int32_t* labels;
  WISP_HD int64_t identity() const { return 0; }
  WISP_HD int64_t map(int64_t row) const { return labels[row] != -1; }
  WISP_HD int64_t combine(int64_t a, int64_t b) const { return a + b; }
};

/// Counts the rows of a class. An index is a class.
template <class T>
struct AddClassCounts {
  CorrectRows<T> rows;
  int64_t count;  // rows
  double* sums;
  WISP_HD void operator()(int64_t c) const {
    int64_t correct = 0, labelled = 0;
    for (int64_t row = 0; row < count; ++row) {
      if (rows.labels[row] != c) continue;
      correct += rows.map(row);
      ++labelled;
    }
    sums[2 * c] += static_cast<double>(correct);
    sums[2 * c + 1] += static_cast<double>(labelled);
  }
};

struct AddCorrectCounts {
  const int64_t* counts;  // correct rows, labelled rows
  double* sums;
  WISP_HD void operator()() const {
    sums[0] += static_cast<double>(counts[0]);
    sums[1] += static_cast<double>(counts[1]);
  }
};

/// Throws Error unless the operands of `op` fit, with sums of the shape `of_sums`.
void check(const char* op, const Shape& logits, const Tensor& labels, const Tensor& sums,
           const Shape& of_sums) {
  WISP_CHECK(logits.rank() == 2 && logits[1] > 0, op, ": logits are ", logits, ", expected (N, C)");
  WISP_CHECK(
      labels.defined() && labels.shape() == Shape({logits[0]}) && labels.dtype() == DType::i32, op,
      ": labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (", logits[0],
      ") i32");
  check_sums(op, sums, of_sums);
}

}  // namespace

void count_correct(const Variable& logits, const Tensor& labels, const Tensor& sums, int64_t most) {
  const Shape& shape = logits.shape();
  check("count_correct", shape, labels, sums, {2});
  WISP_CHECK(most > 0, "count_correct: among the ", most, " largest, expected a positive number");
  Context& context = logits.context();
  const Tensor counts = context.empty({2}, DType::i64);
  const auto* label = labels.data<int32_t>();
  auto* count = counts.data<int64_t>();
  dispatch_float(logits.value().dtype(), "count_correct", [&]<class T>(T) {
    parallel_reduce(context.stream, shape[0],
                    CorrectRows<T>{logits.value().data<T>(), label, shape[1], most}, count);
  });
  parallel_reduce(context.stream, shape[0], LabelledRows{label}, count + 1);
  run_once(context.stream, AddCorrectCounts{count, sums.data<double>()});
}

void count_correct_by_class(const Variable& logits, const Tensor& labels, const Tensor& sums) {
  const Shape& shape = logits.shape();
  check("count_correct_by_class", shape, labels, sums, {shape.rank() == 2 ? shape[1] : 0, 2});
  const Context& context = logits.context();
  dispatch_float(logits.value().dtype(), "count_correct_by_class", [&]<class T>(T) {
    const CorrectRows<T> rows{logits.value().data<T>(), labels.data<int32_t>(), shape[1], 1};
    parallel_for(context.stream, shape[1], AddClassCounts<T>{rows, shape[0], sums.data<double>()},
                 shape[0]);
  });
}

}  // namespace wisp
