#include "apps/inference/log_softmax.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace wisp {

std::vector<double> log_softmax(const Tensor& logits, int64_t row) {
  std::vector<double> result;
  dispatch_float(logits.dtype(), "log_softmax", [&](auto zero) {
    using T = decltype(zero);
    const Tensor of_row = logits.rows(row, row + 1);
    result.assign(of_row.data<T>(), of_row.data<T>() + of_row.numel());
  });
  const double largest = *std::max_element(result.begin(), result.end());
  double sum = 0.0;
  for (const double logit : result) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);
  WISP_CHECK(std::isfinite(log_sum), "the model's output is not finite; has it diverged?");
  for (double& value : result) value -= log_sum;
  return result;
}

}  // namespace wisp
