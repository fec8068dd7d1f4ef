#include "apps/setup/unusable_values.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/value_check.h"

namespace wisp {
namespace {

int64_t count_negative(const Tensor& tensor) {
  return dispatch_float(tensor.dtype(), "running variance", [&]<class T>(T) -> int64_t {
    const T* values = tensor.data<T>();
    return std::count_if(values, values + tensor.numel(), [](T value) { return value < T{0}; });
  });
}

std::string words(int64_t count, const Tensor& tensor, const char* what) {
  return concat(count, " of ", tensor.numel(), count == 1 ? " values is " : " values are ", what);
}

}  // namespace

std::string unusable_values(const std::string& name, const Tensor& tensor) {
  if (const int64_t count = count_nonfinite(tensor); count > 0)
    return words(count, tensor, "not finite");
  if (!name.ends_with("running_var")) return {};
  const int64_t count = count_negative(tensor);
  return count > 0 ? words(count, tensor, "negative, which no variance is") : "";
}

}  // namespace wisp
