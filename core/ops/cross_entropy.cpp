#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/ops/loss.h"

namespace wisp {
namespace {

struct Labels {
  const int32_t* label;
  int64_t classes;
  double smoothing;

  WISP_HD bool valid(int64_t row) const { return label[row] >= 0 && label[row] < classes; }
  WISP_HD bool ignored(int64_t row) const { return label[row] == -1; }
};

/// Computes log Σ exp(logit) and the loss of a row. An item is a row.
template <class T>
struct RowLoss {
  struct Shared {};
  const T* logits;
  Labels labels;
  T* log_sum;
  T* loss;
  WISP_HD void operator()(const Team& team, int64_t row, Shared&) const {
    const int64_t classes = labels.classes;
    const T* x = logits + row * classes;
    const T largest = team.reduce_lanes(0, classes, Largest<T>{x});
    const T log_exp_sum = logarithm(team.reduce_lanes(0, classes, ExpSum<T>{{x, largest}}));
    const bool smooth = labels.smoothing > 0.0;
    const T sum = smooth ? team.reduce_lanes(0, classes, Sum<T>{x, largest}) : T(0);
    team.once([&] {
      log_sum[row] = largest + log_exp_sum;
      if (!labels.valid(row)) {
        loss[row] = labels.ignored(row) ? T(0) : not_a_number<T>();
        return;
      }
      T on_target = x[labels.label[row]] - largest;
      if (smooth) {
        const T smoothing = static_cast<T>(labels.smoothing);
        const T everywhere = sum / static_cast<T>(classes);
        on_target = (T(1) - smoothing) * on_target + smoothing * everywhere;
      }
      loss[row] = log_exp_sum - on_target;
    });
  }
};

/// Computes (softmax - target) / rows · dy. `dx` may be the logits' memory.
template <class T>
struct LogitGradient {
  struct Shared {};
  const T* logits;
  const T* log_sum;
  Labels labels;
  const T* dy;
  T* dx;
  int64_t rows;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t classes = labels.classes;
    const T* x = logits + row * classes + begin;
    T* gradient = dx + row * classes + begin;
    const T smoothing = static_cast<T>(labels.smoothing);
    const T everywhere = smoothing / static_cast<T>(classes);
    const T on_label = everywhere + (T(1) - smoothing);
    const T scale = labels.valid(row) ? *dy / static_cast<T>(rows) : not_a_number<T>();
    const T log_exp_sum = log_sum[row];
    const bool ignored = labels.ignored(row);
    const int64_t label = labels.label[row] - begin;
    team.each(end - begin, [&](int64_t c) {
      const T target = c == label ? on_label : everywhere;
      const T value = (exponential(x[c] - log_exp_sum) - target) * scale;
      gradient[c] = ignored ? T(0) : value;
    });
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
    parallel_teams(context.stream, rows,
                   RowLoss<T>{x.data<T>(), targets, log_sum.data<T>(), row_loss.data<T>()},
                   targets.classes);
    parallel_reduce(context.stream, rows, Mean<T>{row_loss.data<T>(), static_cast<T>(rows)},
                    loss.data<T>());
  });
  // the closure owns `labels` because `targets` points into it
  return record("cross_entropy", loss, {logits},
                [&context, x, labels, targets, log_sum, rows](const Tensor& dy, Inputs& in) {
                  const GradSlot slot = in.slot(0, x);
                  // a loop that may either add or write is not vectorised
                  const Tensor dx =
                      slot.accumulate ? context.empty(x.shape(), x.dtype()) : slot.into;
                  dispatch_float(x.dtype(), "cross_entropy", [&](auto zero) {
                    using T = decltype(zero);
                    parallel_row_parts(context.stream, rows, targets.classes,
                                       LogitGradient<T>{x.data<T>(), log_sum.data<T>(), targets,
                                                        dy.data<T>(), dx.data<T>(), rows});
                  });
                  if (slot.accumulate) deposit(context.stream, dx, slot);
                });
}

}  // namespace wisp
