#include "core/ops.h"
#include "core/parallel.h"

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

struct AddCounts {
  const int64_t* correct;
  int64_t rows;
  int64_t* counts;
  WISP_HD void operator()() const {
    counts[0] += *correct;
    counts[1] += rows;
  }
};

}  // namespace

void count_correct(const Variable& logits, const Tensor& labels, Tensor& counts) {
  const Shape& shape = logits.shape();
  WISP_CHECK(shape.rank() == 2 && shape[1] > 0, "count_correct: logits are ", shape,
             ", expected (N, C)");
  WISP_CHECK(
      labels.defined() && labels.shape() == Shape({shape[0]}) && labels.dtype() == DType::i32,
      "count_correct: labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
      shape[0], ") i32");
  WISP_CHECK(counts.defined() && counts.shape() == Shape({2}) && counts.dtype() == DType::i64,
             "count_correct: counts are ", counts.shape(), " ", name_of(counts.dtype()),
             ", expected (2) i64");
  Context& context = logits.context();
  const Tensor correct = context.empty({}, DType::i64);
  dispatch_float(logits.value().dtype(), "count_correct", [&](auto zero) {
    using T = decltype(zero);
    parallel_reduce(context.stream, shape[0],
                    CorrectRows<T>{logits.value().data<T>(), labels.data<int32_t>(), shape[1]},
                    correct.data<int64_t>());
  });
  run_once(context.stream, AddCounts{correct.data<int64_t>(), shape[0], counts.data<int64_t>()});
}

}  // namespace wisp
