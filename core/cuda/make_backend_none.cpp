// Until there is one.
#include "core/backend.h"
#include "core/error.h"

namespace wisp {

std::unique_ptr<Backend> make_device_backend(MemoryPool&, const Stream& stream, bool) {
  throw Error(concat(stream.device().str(), ": this program has no backend for CUDA devices yet"));
}

}  // namespace wisp
