// The resources of one thread of a worker: a stream, a backend, memory, and the keys of its random
// numbers. Every Variable refers to a context, and ops take theirs from their first input. A worker
// has two contexts, compute and comm; each belongs to its thread.
#pragma once

#include <vector>

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp {

class Backend;
struct LoggedOp;

struct Context {
  Stream stream;
  Backend& backend;
  MemoryPool& pool;
  DType compute = DType::f32;            // type of activations: f32, bf16, or f64 in tests
  bool training = true;                  // batch statistics and dropout are on
  bool recording = true;                 // ops build the graph that backward() walks
  std::vector<LoggedOp>* log = nullptr;  // list that receives every op, if set
  uint64_t seed = 0;
  int rank = 0;
  int threads = 1;  // OpenMP threads of this context's host thread
  int64_t step = 0;
  Tensor samples;  // i64, a dropout key for each row of the batch: the row's sample, or its column
                   // and position in a text

  Tensor empty(Shape shape, DType dtype) const { return Tensor(shape, dtype, pool, stream.id()); }
  /// Zeroed memory for state that outlives a step. The zeros are there when the call returns.
  Tensor zeros(Shape shape, DType dtype) const;
};

}  // namespace wisp
