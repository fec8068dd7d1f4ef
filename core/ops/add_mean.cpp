#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/loss.h"

namespace wisp {
namespace {

template <class T>
struct AddMean {
  const T* mean;
  double count, ignored;
  bool skip;  // skip a mean that is not finite
  double* sums;
  WISP_HD void operator()() const {
    const auto value = static_cast<double>(*mean);
    if (skip && !(value - value == 0.0)) return;  // infinite or NaN
    sums[0] += value * count;
    sums[1] += count - ignored;
  }
};

}  // namespace

void add_mean(const Variable& mean, const Batch& batch, const Tensor& sums) {
  WISP_CHECK(mean.value().numel() == 1, "add_mean: the mean has shape ", mean.shape(),
             ", expected one element");
  check_sums("add_mean", sums, {2});
  dispatch_float(mean.value().dtype(), "add_mean", [&]<class T>(T) {
    run_once(mean.context().stream,
             AddMean<T>{mean.value().data<T>(), static_cast<double>(batch.count),
                        static_cast<double>(batch.ignored), mean.context().training,
                        sums.data<double>()});
  });
}

}  // namespace wisp
