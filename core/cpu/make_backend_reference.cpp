#include "core/backend.h"

namespace wisp {

std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool, int64_t stream_id) {
  return make_cpu_reference_backend(pool, stream_id);
}

std::string missing_for(DType) { return {}; }

}  // namespace wisp
