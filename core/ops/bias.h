// The bias of ops: y (…, O) and a bias (O) of y's wide type, which may be undefined. Used by the
// stream's thread.
#pragma once

#include "core/autograd.h"

namespace wisp {

/// Throws Error that names `op` unless `bias` is undefined, or has shape (channels) and type
/// `type`.
void check_bias(const char* op, const Variable& bias, int64_t channels, DType type);

/// Adds the bias to each row of y.
void add_bias(const Stream& stream, const Tensor& bias, const Tensor& y);

/// Computes the gradient of a bias, the sum of the rows of dy. Temporaries come from `pool`.
void sum_rows(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& d_bias);

}  // namespace wisp
