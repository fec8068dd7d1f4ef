// Checks of an op's gradients in f64 by central differences, on the reference backend, and of its
// bf16 form by f64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

struct GradientCase {
  std::string function;        // name of the function in core/ops.h
  std::string what;            // special property of the case; letters and digits
  std::vector<Tensor> inputs;  // f64 unless said otherwise; all need a gradient
  std::function<Variable(const std::vector<Variable>&)> call;
  bool training = true;
};

/// Checks the gradients of a weighted sum of the function's value, for all inputs. They
/// - equal central differences, within 1e-6 of the input's largest gradient;
/// - are written, not added, in a first pass, and added in an accumulating pass;
/// - equal the gradients of our kernels, where a library would compute;
/// - have the same bits on a late stream.
void expect_gradients(const GradientCase& gradient_case);

/// Checks that the value and gradients of `rounded` equal those of `exact` within a normalised
/// squared error of 1e-4. `rounded` has bf16 activations and f32 parameters as inputs, `exact` the
/// same numbers in f64. With `fastest` the build's best backend computes `rounded`.
void expect_bf16_agrees(const GradientCase& rounded, const GradientCase& exact, bool fastest);

}  // namespace wisp
