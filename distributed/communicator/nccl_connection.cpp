// NCCL runs in non-blocking mode: a call that waits for other ranks returns ncclInProgress, and the
// comm thread looks again. Once it no longer returns this, the work is on the stream.
#include "distributed/communicator/nccl_connection.h"

#include <nccl.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/copy.h"
#include "distributed/communicator/deadline.h"

namespace wisp {
namespace {

constexpr double kPauseUs = 200.0;

/// Sets NCCL's variable against direct access between threads, unless the user has set it. NCCL
/// would read a pool's memory from other devices, but it is mapped for its own device only.
void only_own_buffers_between_threads() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0); });
}

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
      return ncclUint8;
    case DType::u32:
      return ncclUint32;
  }
  throw Error("a reduction of what is no dtype");
}

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

}  // namespace

void NcclConnection::join() {
  only_own_buffers_between_threads();
  ncclUniqueId id{};
  if (host_.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  std::vector<Bytes> in(static_cast<size_t>(host_.size()));  // from rank 0 alone
  in[0] = {reinterpret_cast<std::byte*>(&id), sizeof id};
  const ConstBytes out{in[0].data, host_.rank() == 0 ? in[0].bytes : 0};
  host_.all_gather({&out, 1}, in)->wait();
  use(stream_.device());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(ncclCommInitRankConfig(&comm_, host_.size(), id, host_.rank(), &config),
        "ncclCommInitRankConfig");
  rest_with_others("join the ranks");
}

void NcclConnection::close() {
  if (!comm_) return;
  WISP_CHECK(host_.hear_failure().empty(), host_.hear_failure());
  stream_.synchronize();
  check(ncclCommFinalize(comm_), "ncclCommFinalize");
  rest_with_others("part the ranks");
  check(ncclCommDestroy(std::exchange(comm_, nullptr)), "ncclCommDestroy");
}

/// Waits until NCCL has done what the ranks do together.
void NcclConnection::rest_with_others(const char* purpose) {
  Deadline deadline(timeout_s_);
  while (!at_rest()) {
    WISP_CHECK(host_.hear_failure().empty(), host_.hear_failure());
    WISP_CHECK(!deadline.passed(), "waited ", timeout_s_, " s for NCCL to ", purpose);
    sleep_us(kPauseUs);
  }
}

void NcclConnection::abort() noexcept {
  if (comm_) ncclCommAbort(std::exchange(comm_, nullptr));
}

void NcclConnection::submit(const Call& call) {
  const CallLabel& label = call.label;
  if (!label.reduces()) {
    each_mail(call.to(host_.rank()), call.from(host_.rank()),
              [&](const ConstBytes& from, const Bytes& to) {
                copy_bytes(stream_, from.data, to.data, to.bytes);
              });
  }
  check(ncclGroupStart(), "ncclGroupStart");
  try {
    label.reduces() ? reduce(call) : send_and_receive(call);
  } catch (...) {
    ncclGroupEnd();  // without it nothing could be aborted
    throw;
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
}

void NcclConnection::reduce(const Call& call) {
  const ncclDataType_t type = nccl_type(call.label.dtype);
  const ncclRedOp_t op = call.label.op == ReduceOp::sum ? ncclSum : ncclMax;
  for (const Bytes& slice : call.in) {
    const int64_t n = slice.bytes / size_of(call.label.dtype);
    if (n > 0)
      check(ncclAllReduce(slice.data, slice.data, static_cast<size_t>(n), type, op, comm_,
                          native(stream_)),
            "ncclAllReduce");
  }
}

void NcclConnection::send_and_receive(const Call& call) {
  for (int peer = 0; peer < host_.size(); ++peer) {
    if (peer == host_.rank()) continue;
    for (const ConstBytes& slice : call.to(peer)) {
      if (slice.bytes > 0)
        check(ncclSend(slice.data, static_cast<size_t>(slice.bytes), ncclUint8, peer, comm_,
                       native(stream_)),
              "ncclSend");
    }
    for (const Bytes& slice : call.from(peer)) {
      if (slice.bytes > 0)
        check(ncclRecv(slice.data, static_cast<size_t>(slice.bytes), ncclUint8, peer, comm_,
                       native(stream_)),
              "ncclRecv");
    }
  }
}

bool NcclConnection::at_rest() {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  check(state, "asynchronous error");
  return state != ncclInProgress;
}

void NcclConnection::check(int code, const char* what) const {
  const auto result = static_cast<ncclResult_t>(code);
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string more = ncclGetLastError(comm_);
  throw Error(concat("NCCL: ", what, ": ", ncclGetErrorString(result),
                     more.empty() ? "" : concat(" (", more, ")")));
}

}  // namespace wisp
