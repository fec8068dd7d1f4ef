#include "apps/setup/tally.h"

#include <cmath>

#include "core/loops/parallel.h"
#include "core/ops.h"

namespace wisp {
namespace {

template <class T>
struct AddLoss {
  double* sum;
  const T* loss;
  WISP_HD void operator()() const { *sum += static_cast<double>(*loss); }
};

/// Sets the step's loss to zero and keeps the sums, so that the step can be taken back.
struct BeginStep {
  double* loss;
  double* kept;
  const double* sums;
  int64_t words;
  WISP_HD void operator()() const {
    *loss = 0.0;
    for (int64_t i = 0; i < words; ++i) kept[i] = sums[i];
  }
};

}  // namespace

TallyValues& TallyValues::operator+=(const TallyValues& other) {
  sums.resize(std::max(sums.size(), other.sums.size()));
  for (size_t i = 0; i < other.sums.size(); ++i) sums[i] += other.sums[i];
  return *this;
}

double TallyValues::mean(size_t pair) const {
  if (sums.size() < 2 * pair + 2 || sums[2 * pair + 1] == 0.0) return 0.0;
  return sums[2 * pair] / sums[2 * pair + 1];
}

double TallyValues::value(const Metric& metric, size_t i) const {
  const bool any = sums.size() >= 2 * i + 4 && sums[2 * i + 3] > 0.0;
  return any ? metric.of_mean(mean(i + 1)) : std::nan("");
}

void TallyValues::check() const {
  WISP_CHECK(sums.size() % 2 == 0, sums.size(), " sums, expected pairs");
  for (size_t i = 1; i < sums.size(); i += 2)
    WISP_CHECK(sums[i] >= 0.0 && sums[i] <= 0x1p53, "divisor ", i / 2, " is ", sums[i],
               ", expected 0 to 2^53");
}

double TallyValues::score(const Metric& metric, size_t i) const {
  return std::isfinite(mean_loss()) ? value(metric, i) : std::nan("");
}

Tally::Tally(Context& context, const Model& model)
    : context_(context),
      model_(model),
      step_loss_(context.zeros({1}, DType::f64)),
      before_(context.zeros({1 + std::ssize(model.metrics()), 2}, DType::f64)),
      sums_(context, before_.shape(), DType::f64) {}

void Tally::begin_step() {
  run_once(context_.stream, BeginStep{step_loss_.data<double>(), before_.data<double>(),
                                      sums_.device().data<double>(), before_.numel()});
}

void Tally::drop_step() { copy(context_.stream, before_, sums_.device()); }

void Tally::add(const Step& step, const Batch& batch) {
  const Tensor& loss = step.loss.value();
  dispatch_float(loss.dtype(), "tally", [&](auto zero) {
    using T = decltype(zero);
    run_once(context_.stream, AddLoss<T>{step_loss_.data<double>(), loss.data<T>()});
  });
  const Tensor& sums = sums_.device();
  add_mean(step.loss, batch, sums.slice(0, {2}));
  model_.measure(step, batch, sums.rows(1, sums.shape()[0]));
}

TallyValues Tally::take() {
  sums_.fetch(context_.stream);
  context_.stream.synchronize();
  const auto* sums = sums_.host().data<double>();
  TallyValues values{{sums, sums + sums_.host().numel()}};
  clear(context_.stream, sums_.device());
  return values;
}

}  // namespace wisp
