#include <cmath>

#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

WISP_HD inline float exponential(float x) { return expf(x); }
WISP_HD inline double exponential(double x) { return exp(x); }
WISP_HD inline float logarithm(float x) { return logf(x); }
WISP_HD inline double logarithm(double x) { return log(x); }

struct Labels {
  const int32_t* label;
  int64_t classes;
  double smoothing;

  WISP_HD bool valid(int64_t row) const { return label[row] >= 0 && label[row] < classes; }
  WISP_HD bool ignored(int64_t row) const { return label[row] == -1; }
};

template <class T>
WISP_HD T not_a_number() {
  return static_cast<T>(float_from_bits(0x7fc00000u));
}

/// One index per row: log Σ exp(logit) and the row's loss.
template <class T>
struct RowLoss {
  const T* logits;
  Labels labels;
  T* log_sum;
  T* loss;
  WISP_HD void operator()(int64_t row) const {
    const int64_t classes = labels.classes;
    const T* x = logits + row * classes;
    T largest = x[0];
    for (int64_t c = 1; c < classes; ++c) largest = x[c] > largest ? x[c] : largest;
    T exp_sum = 0;
    T shifted_sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      exp_sum += exponential(x[c] - largest);
      shifted_sum += x[c] - largest;
    }
    const T log_exp_sum = logarithm(exp_sum);
    log_sum[row] = largest + log_exp_sum;
    if (!labels.valid(row)) {
      loss[row] = labels.ignored(row) ? T(0) : not_a_number<T>();
      return;
    }
    const T on_label = x[labels.label[row]] - largest;
    const T everywhere = shifted_sum / static_cast<T>(classes);
    const T smoothing = static_cast<T>(labels.smoothing);
    loss[row] = log_exp_sum - ((T(1) - smoothing) * on_label + smoothing * everywhere);
  }
};

template <class T>
struct Mean {
  using Value = T;
  const T* values;
  T count;
  WISP_HD T identity() const { return 0; }
  WISP_HD T map(int64_t i) const { return values[i] / count; }
  WISP_HD T combine(T a, T b) const { return a + b; }
};

/// One index per logit: (softmax - target) / rows · dy.
template <class T>
struct LogitGradient {
  const T* logits;
  const T* log_sum;
  Labels labels;
  const T* dy;
  T* dx;
  int64_t rows;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const int64_t row = i / labels.classes;
    const T smoothing = static_cast<T>(labels.smoothing);
    T target = smoothing / static_cast<T>(labels.classes);
    if (labels.label[row] == i % labels.classes) target += T(1) - smoothing;
    if (!labels.valid(row)) target = not_a_number<T>();
    const T softmax = exponential(logits[i] - log_sum[row]);
    const T gradient = (softmax - target) * (*dy / static_cast<T>(rows));
    deposit(dx + i, labels.ignored(row) ? T(0) : gradient, accumulate);
  }
};

void check(const Tensor& logits, const Tensor& labels, double label_smoothing) {
  WISP_CHECK(logits.shape().rank() == 2 && logits.numel() > 0, "cross_entropy: logits are ",
             logits.shape(), ", expected (N, C) with at least one row and class");
  WISP_CHECK(logits.dtype() == wide_of(logits.dtype()), "cross_entropy: logits are ",
             name_of(logits.dtype()), ", expected f32 or f64: widen() what the last layer reads");
  WISP_CHECK(labels.shape() == Shape({logits.shape()[0]}) && labels.dtype() == DType::i32,
             "cross_entropy: labels are ", labels.shape(), " ", name_of(labels.dtype()),
             ", expected (", logits.shape()[0], ") i32");
  WISP_CHECK(label_smoothing >= 0.0 && label_smoothing < 1.0, "cross_entropy: label smoothing is ",
             label_smoothing, ", expected a number in [0, 1)");
}

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& labels, double label_smoothing) {
  if (!labels.defined()) return {};
  Context& context = logits.context();
  const Tensor& x = logits.value();
  check(x, labels, label_smoothing);
  const int64_t rows = x.shape()[0];
  const Labels targets{labels.data<int32_t>(), x.shape()[1], label_smoothing};
  const Tensor log_sum = context.empty({rows}, x.dtype());
  const Tensor row_loss = context.empty({rows}, x.dtype());
  const Tensor loss = context.empty({}, x.dtype());
  dispatch_float(x.dtype(), "cross_entropy", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, rows,
                 RowLoss<T>{x.data<T>(), targets, log_sum.data<T>(), row_loss.data<T>()});
    parallel_reduce(context.stream, rows, Mean<T>{row_loss.data<T>(), static_cast<T>(rows)},
                    loss.data<T>());
  });
  // the closure holds `labels` because the targets point into it
  return record("cross_entropy", loss, {logits},
                [&context, x, labels, targets, log_sum, rows](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0);
                  dispatch_float(x.dtype(), "cross_entropy", [&](auto zero) {
                    using T = decltype(zero);
                    parallel_for(
                        context.stream, x.numel(),
                        LogitGradient<T>{x.data<T>(), log_sum.data<T>(), targets, dy.data<T>(),
                                         dx.into.data<T>(), rows, dx.accumulate});
                  });
                });
}

}  // namespace wisp
