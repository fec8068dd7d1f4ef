// Compares the gradients of an op with central differences, in f64 on the reference backend, and
// its bf16 form with that in f64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

struct GradientCase {
  std::string function;        // its name in core/ops.h
  std::string what;            // what is special in this case; letters and digits
  std::vector<Tensor> inputs;  // f64 unless said otherwise; every one wants a gradient
  std::function<Variable(const std::vector<Variable>&)> call;
  bool training = true;
};

/// Expects that the gradients of a weighted sum of the function's value, for all inputs,
/// - equal central differences: 1e-6 of the largest gradient of that input;
/// - are written, not added, in a first pass, and added in an accumulating one;
/// - are those of our kernels, where a library would compute;
/// - are the same bits on a late stream.
void expect_gradients(const GradientCase& gradient_case);

/// Expects that the value and the gradients of `rounded`, whose inputs are bf16 activations and f32
/// parameters, are those of `exact`, the same numbers in f64, up to a normalised squared error of
/// 1e-4. `fastest`: on the build's best backend.
void expect_bf16_agrees(const GradientCase& rounded, const GradientCase& exact, bool fastest);

}  // namespace wisp
