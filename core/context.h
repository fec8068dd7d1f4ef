// What a worker's thread of control owns: a stream, the libraries behind the ops, memory, and the
// keys of its random numbers. Carried by every Variable; ops take it from their first input. A
// worker has two, compute and comm.
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
  DType compute = DType::f32;            // dtype of activations: f32, bf16, or f64 in tests
  bool training = true;                  // batch statistics and dropout on
  bool recording = true;                 // ops build the graph that backward() walks
  std::vector<LoggedOp>* log = nullptr;  // if set, every op is added to it
  uint64_t seed = 0;
  int rank = 0;
  int threads = 1;  // OpenMP threads of this context's host thread
  int64_t step = 0;
  Tensor samples;  // i64, a key for each row of the batch: its sample, or its column and position
                   // in a text; dropout draws by it, whichever worker has the row

  Tensor empty(Shape shape, DType dtype) const { return Tensor(shape, dtype, pool, stream.id()); }
  /// For what outlives a step: zero when this returns.
  Tensor zeros(Shape shape, DType dtype) const;
};

}  // namespace wisp
