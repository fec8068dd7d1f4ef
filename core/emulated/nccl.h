// What tests ask of the stand-in for NCCL (include/nccl.h), whose ranks are threads of one process,
// each with a stream and a device of its own. It hangs where NCCL hangs. Any thread.
#pragma once

namespace wisp::emulated {

enum class NcclFault {
  none,
  silent,  // operations that begin now never end
  told     // nor do these, and ncclCommGetAsyncError has an error on `rank`
};
void set_nccl_fault(NcclFault fault, int rank = -1);

}  // namespace wisp::emulated
