// What ops with a bias share: y (…, O) and a bias (O) of y's wide type, which may be undefined.
#pragma once

#include "core/autograd.h"

namespace wisp {

/// Throws Error naming `op` unless `bias` is undefined or (channels) of `type`.
void check_bias(const char* op, const Variable& bias, int64_t channels, DType type);

/// y += bias, in each row.
void add_bias(const Stream& stream, const Tensor& bias, const Tensor& y);

/// The bias' gradient: the sum of the rows of dy. Temporaries are the pool's.
void sum_rows(const Stream& stream, MemoryPool& pool, const Tensor& dy, const GradSlot& d_bias);

}  // namespace wisp
