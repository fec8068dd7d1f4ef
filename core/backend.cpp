#include "core/backend.h"

namespace wisp {

std::unique_ptr<Backend> make_reference_backend(MemoryPool& pool, const Stream& stream) {
  if (stream.device().is_cuda()) return make_device_backend(pool, stream, false, {});
  return make_cpu_reference_backend();
}

std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream, const GpuMath& math) {
  if (stream.device().is_cuda()) return make_device_backend(pool, stream, true, math);
  return make_cpu_backend(pool);
}

}  // namespace wisp
