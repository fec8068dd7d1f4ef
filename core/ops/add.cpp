#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

template <class T>
struct Add {
  const T* a;
  const T* b;
  T* sum;
  WISP_HD void operator()(int64_t i) const { store(sum + i, wide(a[i]) + wide(b[i])); }
};

}  // namespace

Variable add(const Variable& a, const Variable& b) {
  Context& context = a.context();
  const DType dtype = a.value().dtype();
  WISP_CHECK(a.shape() == b.shape() && dtype == b.value().dtype(), "add: ", a.shape(), " ",
             name_of(dtype), " + ", b.shape(), " ", name_of(b.value().dtype()),
             ", expected equal shapes and types");
  const Tensor sum = context.empty(a.shape(), dtype);
  dispatch_activation(dtype, "add", [&]<class T>(T) {
    parallel_for(context.stream, sum.numel(),
                 Add<T>{a.value().data<T>(), b.value().data<T>(), sum.data<T>()});
  });
  return record("add", sum, {a, b}, [&context](const Tensor& dy, Inputs& in) {
    for (size_t i = 0; i < 2; ++i) {
      if (in.wanted(i)) deposit(context.stream, dy, in.slot(i));
    }
  });
}

}  // namespace wisp
