#include "core/backend.h"

namespace wisp {

std::unique_ptr<Backend> make_cpu_backend(MemoryPool&) { return make_cpu_reference_backend(); }

std::string missing_for(DType) { return {}; }

}  // namespace wisp
