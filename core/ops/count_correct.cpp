#include "core/loops/parallel.h"
#include "core/ops.h"

namespace wisp {
namespace {

template <class T>
struct CorrectRows {
  using Value = int64_t;
  const T* logits;
  const int32_t* labels;
  int64_t classes;
  WISP_HD int64_t identity() const { return 0; }
  WISP_HD int64_t map(int64_t row) const {
    const T* x = logits + row * classes;
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) best = x[c] > x[best] ? c : best;
    return best == labels[row];
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

struct AddCounts {
  const int64_t* counts;  // correct rows, labelled rows
  double* sums;
  WISP_HD void operator()() const {
    sums[0] += static_cast<double>(counts[0]);
    sums[1] += static_cast<double>(counts[1]);
  }
};

}  // namespace

void count_correct(const Variable& logits, const Tensor& labels, const Tensor& sums) {
  const Shape& shape = logits.shape();
  WISP_CHECK(shape.rank() == 2 && shape[1] > 0, "count_correct: logits are ", shape,
             ", expected (N, C)");
  WISP_CHECK(
      labels.defined() && labels.shape() == Shape({shape[0]}) && labels.dtype() == DType::i32,
      "count_correct: labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
      shape[0], ") i32");
  WISP_CHECK(sums.defined() && sums.shape() == Shape({2}) && sums.dtype() == DType::f64,
             "count_correct: sums are ", sums.shape(), " ", name_of(sums.dtype()),
             ", expected (2) f64");
  Context& context = logits.context();
  const Tensor counts = context.empty({2}, DType::i64);
  const auto* label = labels.data<int32_t>();
  auto* count = counts.data<int64_t>();
  dispatch_float(logits.value().dtype(), "count_correct", [&](auto zero) {
    using T = decltype(zero);
    parallel_reduce(context.stream, shape[0],
                    CorrectRows<T>{logits.value().data<T>(), label, shape[1]}, count);
  });
  parallel_reduce(context.stream, shape[0], LabelledRows{label}, count + 1);
  run_once(context.stream, AddCounts{count, sums.data<double>()});
}

}  // namespace wisp
