#include "core/io/value_check.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace wisp {
namespace {

template <class T, class Holds>
void check_each(const Tensor& tensor, const char* expected, const Holds& holds) {
  const T* values = tensor.data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    WISP_CHECK(holds(values[i]), "element ", i, " is ", values[i], ", expected ", expected);
}

template <class T>
int64_t count_nonfinite_of(const Tensor& tensor) {
  const T* values = tensor.data<T>();
  return std::count_if(values, values + tensor.numel(),
                       [](T value) { return !std::isfinite(static_cast<float>(value)); });
}

}  // namespace

void check_counts(const Tensor& tensor) {
  check_each<int64_t>(tensor, "0 to 2^60",
                      [](int64_t value) { return value >= 0 && value <= int64_t{1} << 60; });
}

void check_bounded(const Tensor& tensor) {
  dispatch_float(tensor.dtype(), "check_bounded", [&]<class T>(T) {
    check_each<T>(tensor, "a number of at most 2^110 in magnitude",
                  [](T value) { return std::abs(value) <= static_cast<T>(0x1p110); });
  });
}

void check_not_negative(const Tensor& tensor) {
  dispatch_float(tensor.dtype(), "check_not_negative", [&]<class T>(T) {
    check_each<T>(tensor, "0 or more", [](T value) { return value >= T{0}; });
  });
}

int64_t count_nonfinite(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f16:
      return count_nonfinite_of<Half>(tensor);
    case DType::bf16:
      return count_nonfinite_of<BFloat16>(tensor);
    case DType::f32:
      return count_nonfinite_of<float>(tensor);
    case DType::f64: {
      const double* values = tensor.data<double>();
      return std::count_if(values, values + tensor.numel(),
                           [](double value) { return !std::isfinite(value); });
    }
    default:
      return 0;
  }
}

}  // namespace wisp
