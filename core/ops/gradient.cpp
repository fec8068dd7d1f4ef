#include "core/ops/gradient.h"

#include "core/loops/parallel.h"

namespace wisp {
namespace {

template <class From, class To>
struct Deposit {
  const From* gradient;
  To* into;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    deposit(into + i, static_cast<Wide<To>>(wide(gradient[i])), accumulate);
  }
};

}  // namespace

void deposit(const Stream& stream, const Tensor& gradient, const GradSlot& slot) {
  dispatch_activation(gradient.dtype(), "gradient", [&]<class From>(From) {
    dispatch_activation(slot.into.dtype(), "gradient", [&]<class To>(To) {
      parallel_for(stream, gradient.numel(),
                   Deposit<From, To>{gradient.data<From>(), slot.into.data<To>(), slot.accumulate});
    });
  });
}

Tensor in_type(DType type, const Tensor& x, const Stream& stream, MemoryPool& pool) {
  if (x.dtype() == type) return x;
  const Tensor copy(x.shape(), type, pool, stream.id());
  deposit(stream, x, {copy, false});
  return copy;
}

}  // namespace wisp
