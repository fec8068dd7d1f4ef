// Conversions between host tensors and numbers, for tests. Any thread.
#pragma once

#include <vector>

#include "core/random.h"
#include "core/tensor/tensor.h"

namespace wisp {

inline Tensor tensor(Shape shape, const std::vector<double>& values, DType dtype = DType::f64) {
  WISP_CHECK(shape.numel() == static_cast<int64_t>(values.size()), "test: ", values.size(),
             " values for shape ", shape);
  Tensor result(shape, dtype);
  dispatch_activation(dtype, "test", [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i)
      store(result.data<T>() + i, static_cast<Wide<T>>(values[i]));
  });
  return result;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor result({static_cast<int64_t>(values.size())}, dtype_of<T>::value);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}

inline Tensor full(Shape shape, double value, DType dtype = DType::f64) {
  return tensor(shape, std::vector<double>(static_cast<size_t>(shape.numel()), value), dtype);
}

/// Values of both signs, 0.1 to 1 in magnitude, away from the corner of a ReLU.
inline Tensor random_tensor(Shape shape, uint64_t seed, DType dtype = DType::f64) {
  const Philox random(seed, 0, 0);
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const double magnitude = 0.1 + 0.9 * random.uniform(i);
    values[i] = random.block(i).word[1] & 1 ? magnitude : -magnitude;
  }
  return tensor(shape, values, dtype);
}

/// 0, 1, 2, …
inline Tensor sample_ids(int64_t count, int64_t first = 0) {
  Tensor result({count}, DType::i64);
  for (int64_t i = 0; i < count; ++i) result.data<int64_t>()[i] = first + i;
  return result;
}

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> result(static_cast<size_t>(tensor.numel()));
  dispatch_activation(tensor.dtype(), "test", [&](auto zero) {
    const auto* data = tensor.data<decltype(zero)>();
    for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<double>(wide(data[i]));
  });
  return result;
}

}  // namespace wisp
