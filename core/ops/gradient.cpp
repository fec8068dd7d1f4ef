#include "core/ops/gradient.h"

#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct Deposit {
  const T* gradient;
  T* into;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const { deposit(into + i, gradient[i], accumulate); }
};

}  // namespace

void deposit(const Stream& stream, const Tensor& gradient, const GradSlot& slot) {
  dispatch_float(gradient.dtype(), "gradient", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(stream, gradient.numel(),
                 Deposit<T>{gradient.data<T>(), slot.into.data<T>(), slot.accumulate});
  });
}

}  // namespace wisp
