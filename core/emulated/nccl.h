// Test controls of the stand-in for NCCL (include/nccl.h). Its ranks are threads of one process,
// each with a stream and a device of its own. It hangs where NCCL hangs. Any thread.
#pragma once

namespace wisp::emulated {

enum class NcclFault {
  none,
  silent,  // operations that begin from now on never end
  told     // silent, and ncclCommGetAsyncError returns an error on `rank`
};
void set_nccl_fault(NcclFault fault, int rank = -1);

}  // namespace wisp::emulated
