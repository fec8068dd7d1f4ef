#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/ops/loss.h"
#include "core/ops/mixup.h"

namespace wisp {
namespace {

/// The target of a part of a row's classes.
template <class T>
struct Target {
  int64_t label;  // counted from the part's first class
  T on_label, elsewhere;
  WISP_HD T operator()(int64_t c) const { return c == label ? on_label : elsewhere; }
};

/// The target of a part of a row that mixes two samples. They may have the same label.
template <class T>
struct MixedTarget {
  int64_t own, other;  // labels, counted from the part's first class
  T on_own, on_other, elsewhere;
  WISP_HD T operator()(int64_t c) const {
    return elsewhere + (c == own ? on_own : T(0)) + (c == other ? on_other : T(0));
  }
};

struct Labels {
  const int32_t* label;
  int64_t classes;
  double smoothing;

  WISP_HD bool is_class(int64_t row) const { return label[row] >= 0 && label[row] < classes; }
  WISP_HD bool valid(int64_t row) const { return is_class(row); }
  WISP_HD bool ignored(int64_t row) const { return label[row] == -1; }
  /// The logit of the row's label.
  template <class T>
  WISP_HD T at_label(const T* x, int64_t row) const {
    return x[label[row]];
  }
  template <class T>
  WISP_HD T everywhere() const {
    return static_cast<T>(smoothing) / static_cast<T>(classes);
  }
  template <class T>
  WISP_HD Target<T> target(int64_t row, int64_t begin) const {
    return {label[row] - begin, everywhere<T>() + (T(1) - static_cast<T>(smoothing)),
            everywhere<T>()};
  }
};

/// Labels of rows that are mixed with their neighbours.
struct MixedLabels : Labels {
  const float* share;
  int64_t rows;

  WISP_HD bool mixes(int64_t row) const { return share[row] < 1.0f; }
  WISP_HD int64_t other(int64_t row) const { return label[neighbour_of(row, rows)]; }
  WISP_HD bool valid(int64_t row) const {
    return is_class(row) && (!mixes(row) || is_class(neighbour_of(row, rows)));
  }
  /// The mean of the logits of both labels.
  template <class T>
  WISP_HD T at_label(const T* x, int64_t row) const {
    if (!mixes(row)) return x[label[row]];
    const T own = share[row];
    return own * x[label[row]] + (T(1) - own) * x[other(row)];
  }
  template <class T>
  WISP_HD MixedTarget<T> target(int64_t row, int64_t begin) const {
    const T own = share[row], on_labels = T(1) - static_cast<T>(smoothing);
    return {label[row] - begin, other(row) - begin, on_labels * own, on_labels * (T(1) - own),
            everywhere<T>()};
  }
};

/// Computes log Σ exp(logit) and the loss of a row. An item is a row.
template <class T, class AnyLabels>
struct RowLoss {
  struct Shared {};
  const T* logits;
  AnyLabels labels;
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
      T on_target = labels.at_label(x, row) - largest;
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
template <class T, class AnyLabels>
struct CrossEntropyGradient {
  struct Shared {};
  const T* logits;
  const T* log_sum;
  AnyLabels labels;
  const T* dy;
  T* dx;
  int64_t rows;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t classes = labels.classes;
    const T* x = logits + row * classes + begin;
    T* gradient = dx + row * classes + begin;
    const auto target = labels.template target<T>(row, begin);
    const T scale = labels.valid(row) ? *dy / static_cast<T>(rows) : not_a_number<T>();
    const T log_exp_sum = log_sum[row];
    const bool ignored = labels.ignored(row);
    team.each(end - begin, [&](int64_t c) {
      const T value = (exponential(x[c] - log_exp_sum) - target(c)) * scale;
      gradient[c] = ignored ? T(0) : value;
    });
  }
};

void check(const Tensor& logits, const Tensor& labels, double label_smoothing,
           const Tensor& shares) {
  WISP_CHECK(logits.shape().rank() == 2 && logits.numel() > 0, "cross_entropy: logits are ",
             logits.shape(), ", expected (N, C) with at least one row and class");
  check_wide("cross_entropy", logits);
  WISP_CHECK(labels.shape() == Shape({logits.shape()[0]}) && labels.dtype() == DType::i32,
             "cross_entropy: labels are ", labels.shape(), " ", name_of(labels.dtype()),
             ", expected (", logits.shape()[0], ") i32");
  WISP_CHECK(label_smoothing >= 0.0 && label_smoothing < 1.0, "cross_entropy: label smoothing is ",
             label_smoothing, ", expected a number in [0, 1)");
  if (shares.defined()) check_shares("cross_entropy", shares, logits.shape()[0]);
}

template <class AnyLabels>
Variable of_labels(const Variable& logits, const AnyLabels& labels,
                   const std::vector<Tensor>& owners) {
  Context& context = logits.context();
  const Tensor& x = logits.value();
  const int64_t rows = x.shape()[0];
  const Tensor log_sum = context.empty({rows}, x.dtype());
  const Tensor row_loss = context.empty({rows}, x.dtype());
  const Tensor loss = context.empty({}, x.dtype());
  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>(T) {
    parallel_teams(
        context.stream, rows,
        RowLoss<T, AnyLabels>{x.data<T>(), labels, log_sum.data<T>(), row_loss.data<T>()},
        labels.classes);
    parallel_reduce(context.stream, rows, Mean<T>{row_loss.data<T>(), static_cast<T>(rows)},
                    loss.data<T>());
  });
  // the closure holds `owners` because `labels` points into them
  return record("cross_entropy", loss, {logits},
                [&context, x, labels, owners, log_sum, rows](const Tensor& dy, Inputs& in) {
                  const GradSlot slot = in.slot(0, x);
                  // a loop that may either add or write is not vectorised
                  const Tensor dx =
                      slot.accumulate ? context.empty(x.shape(), x.dtype()) : slot.into;
                  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>(T) {
                    parallel_row_parts(
                        context.stream, rows, labels.classes,
                        CrossEntropyGradient<T, AnyLabels>{x.data<T>(), log_sum.data<T>(), labels,
                                                           dy.data<T>(), dx.data<T>(), rows});
                  });
                  if (slot.accumulate) deposit(context.stream, dx, slot);
                });
}

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& labels, double label_smoothing,
                       const Tensor& shares) {
  if (!labels.defined()) return {};
  check(logits.value(), labels, label_smoothing, shares);
  const Shape& shape = logits.shape();
  const Labels targets{labels.data<int32_t>(), shape[1], label_smoothing};
  if (!shares.defined()) return of_labels(logits, targets, {labels});
  return of_labels(logits, MixedLabels{targets, shares.data<float>(), shape[0]}, {labels, shares});
}

}  // namespace wisp
