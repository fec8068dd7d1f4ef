#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {

Variable widen(const Variable& x) {
  const DType dtype = wide_of(x.value().dtype());
  if (dtype == x.value().dtype()) return x;
  Context& context = x.context();
  const Tensor y = context.empty(x.shape(), dtype);
  deposit(context.stream, x.value(), {y, false});
  return record("widen", y, {x}, [&context](const Tensor& dy, Inputs& in) {
    deposit(context.stream, dy, in.slot(0));
  });
}

}  // namespace wisp
