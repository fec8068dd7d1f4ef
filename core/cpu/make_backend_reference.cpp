#include "core/backend.h"

namespace wisp {

std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream) {
  return make_reference_backend(pool, stream.id());
}

std::string missing_for(DType) { return {}; }

}  // namespace wisp
