// A context for tests, with its pool, stream and backend. One thread.
#pragma once

#include <memory>

#include "core/context.h"
#include "tests/support/kernels_over.h"

namespace wisp {

struct TestContextOptions {
  DType compute = DType::f64;
  bool late = false;  // a stream with its own thread: synchronize before reading
  Library library = Library::reference;
  Device device;  // if not the CPU: synchronize and fetch() before reading
};

struct TestContext {
  explicit TestContext(TestContextOptions options = {})
      : pool(options.device, {.guarded = true}),
        stream(options.late ? Stream::late() : Stream::on(options.device)),
        backend(make_backend_of(options.library, pool, stream)),
        context{.stream = stream, .backend = *backend, .pool = pool, .compute = options.compute} {}
  ~TestContext() {
    try {
      stream.synchronize();
    } catch (...) {  // a test whose task throws synchronizes itself
    }
  }

  MemoryPool pool;  // first member: outlives tensors in it
  Stream stream;
  std::unique_ptr<Backend> backend;
  Context context;
};

}  // namespace wisp
