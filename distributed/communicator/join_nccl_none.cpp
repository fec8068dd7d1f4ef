// The substitute for NCCL in a program without it; wisp::emulated_nccl replaces its function.
#include "distributed/communicator/nccl_communicator.h"

namespace wisp {

[[gnu::weak]] std::unique_ptr<Communicator> join_nccl(Communicator&, const Stream&,
                                                      const MemoryPool&, double) {
  return nullptr;
}

}  // namespace wisp
