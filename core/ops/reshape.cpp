#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {

Variable reshape(const Variable& x, Shape shape) {
  Context& context = x.context();
  return record("reshape", x.value().reshape(shape), {x}, [&context](const Tensor& dy, Inputs& in) {
    deposit(context.stream, dy, in.slot(0));
  });
}

}  // namespace wisp
