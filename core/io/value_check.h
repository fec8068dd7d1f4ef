// The values that a saved tensor may have. Checksums show that a file is whole, but not who wrote
// it, and some values reach an index, a division or a loop's bound. Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "core/tensor/tensor.h"

namespace wisp {

/// Throws Error, which names the first such element, for values that no run saves. The tensor lies
/// on the host.
using ValueCheck = std::function<void(const Tensor&)>;

/// i64 from 0 to 2^60: sums of a few such numbers fit.
void check_counts(const Tensor& tensor);
/// f32 or f64 of at most 2^110 in magnitude. No state of a method comes near it, because gradients
/// have norms of at most 2^96.
void check_bounded(const Tensor& tensor);
/// f32 or f64 of 0 or more.
void check_not_negative(const Tensor& tensor);

/// The number of elements that are NaN or infinite; 0 for types that are not float.
int64_t count_nonfinite(const Tensor& tensor);

}  // namespace wisp
