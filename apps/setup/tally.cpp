#include "apps/setup/tally.h"

#include "core/ops.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct AddLoss {
  double* step;
  double* sums;
  const T* loss;
  WISP_HD void operator()() const {
    const auto value = static_cast<double>(*loss);
    *step += value;
    if (!(value - value == 0.0)) return;  // infinite or NaN
    sums[0] += value;
    sums[1] += 1.0;
  }
};

struct Clear {
  double* value;
  WISP_HD void operator()() const { *value = 0.0; }
};

}  // namespace

Tally::Tally(Context& context)
    : context_(context),
      step_loss_(context.zeros({1}, DType::f64)),
      losses_(context.zeros({2}, DType::f64)),
      counts_(context.zeros({2}, DType::i64)) {}

void Tally::begin_step() { run_once(context_.stream, Clear{step_loss_.data<double>()}); }

void Tally::add(const Variable& loss, const Variable& logits, const Tensor& labels) {
  dispatch_float(loss.value().dtype(), "tally", [&](auto zero) {
    using T = decltype(zero);
    run_once(context_.stream,
             AddLoss<T>{step_loss_.data<double>(), losses_.data<double>(), loss.value().data<T>()});
  });
  count_correct(logits, labels, counts_);
}

TallyValues Tally::take() {
  context_.stream.synchronize();
  const double* losses = losses_.data<double>();
  const int64_t* counts = counts_.data<int64_t>();
  const TallyValues values{losses[0], losses[1], static_cast<double>(counts[0]),
                           static_cast<double>(counts[1])};
  losses_.clear();
  counts_.clear();
  return values;
}

}  // namespace wisp
