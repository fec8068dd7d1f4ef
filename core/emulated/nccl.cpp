// NCCL's calls among emulated devices. A meeting is an operation of several ranks. Its last rank
// fills its queue, which waits for the streams of all ranks and moves the data for all. Each rank's
// stream waits at its own gate, which the meeting or an abort opens.
#include "core/emulated/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/emulated/memory.h"
#include "core/emulated/queues.h"
#include "core/emulated/runtime.h"
#include "core/tensor/dtype.h"

namespace wisp::emulated {
namespace {

std::atomic<NcclFault> fault{NcclFault::none};
std::atomic<int> faulty_rank{-1};

constexpr int kAll = -1;        // the peer of a reduction
constexpr int64_t kOpened = 2;  // position of an open gate

struct Op {
  int from = kAll, to = kAll;
  std::byte* memory = nullptr;  // an alias
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;

  bool reduces() const { return from == kAll; }
  bool fits(const Op& other) const {
    return count == other.count && type == other.type && op == other.op;
  }
};

/// A rank's part in a meeting.
struct Side {
  int rank = -1;  // -1: not there yet
  std::vector<Op> ops;
  Point start;  // the group's place in its stream
  std::shared_ptr<Queue> gate;
  bool aborted = false;
};

struct Meeting {
  std::vector<Side> sides;  // index: rank; for messages, sender and receiver
  std::shared_ptr<Queue> queue;

  bool complete() const {
    return std::ranges::all_of(sides, [](const Side& side) { return side.rank >= 0; });
  }
  bool fits() const {
    return std::ranges::all_of(sides, [this](const Side& side) {
      return std::ranges::equal(side.ops, sides[0].ops, &Op::fits);
    });
  }
};

/// The shared state of the ranks with one unique id.
struct Clique {
  using Key = std::tuple<int, int, int64_t>;  // from, to, index among their meetings

  std::mutex mutex;  // taken before the mutex of Queues
  std::vector<int> devices;
  size_t joined = 0;
  std::map<Key, std::shared_ptr<Meeting>> meetings;  // meetings in progress
};

std::mutex cliques_mutex;
std::map<std::string, std::weak_ptr<Clique>>& cliques() {
  static auto* all = new std::map<std::string, std::weak_ptr<Clique>>;
  return *all;
}

std::shared_ptr<Clique> clique_of(const ncclUniqueId& id, int ranks) {
  std::lock_guard lock(cliques_mutex);
  std::weak_ptr<Clique>& known = cliques()[id.internal];
  std::shared_ptr<Clique> clique = known.lock();
  if (!clique) known = clique = std::make_shared<Clique>();
  clique->devices.resize(static_cast<size_t>(ranks), -1);
  return clique;
}

/// Returns call(T{}) for the C++ type T of `type`.
template <class Call>
auto with_type(ncclDataType_t type, const Call& call) {
  switch (type) {
    case ncclUint8:
      return call(uint8_t{});
    case ncclInt32:
      return call(int32_t{});
    case ncclUint32:
      return call(uint32_t{});
    case ncclInt64:
      return call(int64_t{});
    case ncclFloat16:
      return call(Half{});
    case ncclFloat32:
      return call(float{});
    case ncclFloat64:
      return call(double{});
    case ncclBfloat16:
      return call(BFloat16{});
  }
  throw Error(wisp::concat("NCCL has no type ", static_cast<int>(type)));
}

size_t bytes_of(const Op& op) {
  return op.count * with_type(op.type, [](auto zero) { return sizeof zero; });
}

/// Reduces in rank order, rounded once.
template <class T>
void reduce(const std::vector<Side>& sides, size_t index) {
  constexpr bool kSmall = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
  using Value = std::conditional_t<kSmall, float, T>;
  const Op& first = sides[0].ops[index];
  const auto at = [&](const Side& side, size_t i) {
    return static_cast<Value>(reinterpret_cast<const T*>(side.ops[index].memory)[i]);
  };
  for (size_t i = 0; i < first.count; ++i) {
    Value total = at(sides[0], i);
    for (size_t rank = 1; rank < sides.size(); ++rank) {
      const Value next = at(sides[rank], i);
      if (first.op == ncclMax) {
        total = total >= next || total != total ? total : next;
      } else if constexpr (std::is_integral_v<T>) {
        using Wrapped = std::make_unsigned_t<T>;
        total = static_cast<T>(static_cast<Wrapped>(total) + static_cast<Wrapped>(next));
      } else {
        total += next;
      }
    }
    for (const Side& side : sides)
      reinterpret_cast<T*>(side.ops[index].memory)[i] = static_cast<T>(total);
  }
}

/// Moves the data and opens the gates. Does neither if a rank has aborted, because then no rank's
/// kernel ends.
void carry_out(Clique& clique, const Clique::Key& key, const Meeting& meeting) {
  std::lock_guard lock(clique.mutex);
  if (std::ranges::any_of(meeting.sides, &Side::aborted)) return;
  const std::vector<Op>& ops = meeting.sides[0].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].reduces()) {
      with_type(ops[i].type, [&](auto zero) { reduce<decltype(zero)>(meeting.sides, i); });
    } else {
      std::memcpy(meeting.sides[1].ops[i].memory, ops[i].memory, bytes_of(ops[i]));
    }
  }
  for (const Side& side : meeting.sides) Queues::get().post(side.gate, [] {});
  clique.meetings.erase(key);
}

}  // namespace

void set_nccl_fault(NcclFault what, int rank) {
  fault = what;
  faulty_rank = rank;
}

}  // namespace wisp::emulated

using namespace wisp::emulated;  // the functions below are NCCL's

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::map<std::pair<int, int>, int64_t> meetings;  // number so far, by from and to
  std::vector<Op> submitted;  // operations of a group that is not on the stream yet
  cudaStream_t stream = nullptr;
  bool looked = false;  // state was queried since ncclGroupEnd
  std::string error;

  ncclResult_t fail(ncclResult_t result, std::string words) {
    error = std::move(words);
    return result;
  }
  ncclResult_t state();
  void launch();
  void meet(const std::pair<int, int>& who, std::vector<Op> ops, const Point& start);
};

namespace {

thread_local int group_depth = 0;
thread_local ncclComm* group_comm = nullptr;

ncclResult_t add(ncclComm* comm, cudaStream_t stream, const void* memory, Op op) {
  const bool fits = group_comm ? group_comm == comm : comm->submitted.empty();
  if (group_depth == 0 || !fits)
    return comm->fail(ncclInvalidUsage, "not emulated: operations that are not one group's");
  const auto index = static_cast<size_t>(comm->rank);
  if (queue_of(stream)->device != comm->clique->devices[index])
    return comm->fail(ncclInvalidUsage, "the stream is not of the communicator's device");
  op.memory = Memory::get().alias(memory, bytes_of(op));
  if (!op.memory) return comm->fail(ncclInvalidArgument, "the memory is not a device's");
  comm->submitted.push_back(op);
  comm->stream = stream;
  comm->looked = false;
  group_comm = comm;
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclComm::state() {
  {
    std::lock_guard lock(clique->mutex);
    if (clique->joined < clique->devices.size()) return ncclInProgress;
    for (size_t peer = 0; peer < clique->devices.size(); ++peer) {
      if (static_cast<int>(peer) != rank &&
          clique->devices[peer] == clique->devices[static_cast<size_t>(rank)])
        return fail(ncclInvalidUsage,
                    wisp::concat("Duplicate GPU detected : rank ", rank, " and rank ", peer,
                                 " both on CUDA device ", clique->devices[peer]));
    }
  }
  if (!submitted.empty()) {
    if (!std::exchange(looked, true)) return ncclInProgress;
    launch();
  }
  if (fault == NcclFault::told && faulty_rank == rank)
    return fail(ncclRemoteError, "the emulated wire was cut");
  return ncclSuccess;
}

/// Puts the group on the stream, where it stays until all its meetings are over.
void ncclComm::launch() {
  std::map<std::pair<int, int>, std::vector<Op>> by_peers;
  for (const Op& op : std::exchange(submitted, {})) by_peers[{op.from, op.to}].push_back(op);
  const Point start = Queues::get().end(queue_of(stream));
  for (auto& [who, ops] : by_peers) meet(who, std::move(ops), start);
}

void ncclComm::meet(const std::pair<int, int>& who, std::vector<Op> ops, const Point& start) {
  Queues& queues = Queues::get();
  std::lock_guard lock(clique->mutex);
  const Clique::Key key{who.first, who.second, meetings[who]++};
  std::shared_ptr<Meeting>& meeting = clique->meetings[key];
  const int device = start.queue->device;
  const bool reduces = who.first == kAll;
  if (!meeting) {
    meeting = std::make_shared<Meeting>();
    meeting->sides.resize(reduces ? clique->devices.size() : 2);
    meeting->queue = queues.make(device);
  }
  Side& side = meeting->sides[reduces ? static_cast<size_t>(rank) : who.first == rank ? 0u : 1u];
  side = {rank, std::move(ops), start, queues.make(device)};
  queues.post_wait(side.gate, {meeting->queue, std::ssize(meeting->sides) + 1});
  queues.post_wait(start.queue, {side.gate, kOpened});
  if (!meeting->complete() || !meeting->fits() || fault != NcclFault::none) return;
  for (const Side& other : meeting->sides) queues.post_wait(meeting->queue, other.start);
  queues.post(meeting->queue, [of = clique, key, meeting] { carry_out(*of, key, *meeting); });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) { return comm ? comm->error.c_str() : ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next{0};
  const std::string name = wisp::concat("clique ", next++);
  *id = {};
  std::copy(name.begin(), name.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (config->blocking != 0) return ncclInvalidUsage;  // blocking is not emulated
  auto made = std::make_unique<ncclComm>();
  made->clique = clique_of(id, ranks);
  made->rank = rank;
  std::lock_guard lock(made->clique->mutex);
  cudaGetDevice(&made->clique->devices[static_cast<size_t>(rank)]);
  ++made->clique->joined;
  *comm = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

/// Opens the rank's own gates. Other ranks' gates stay closed until they abort, too.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::unique_ptr<ncclComm> owned(comm);
  std::lock_guard lock(comm->clique->mutex);
  for (auto& [key, meeting] : comm->clique->meetings) {
    for (Side& side : meeting->sides) {
      if (side.rank != comm->rank) continue;
      side.aborted = true;
      Queues::get().strand(meeting->queue);
      Queues::get().pass({side.gate, kOpened});
    }
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  return std::exchange(group_comm, nullptr) ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (from != to) return comm->fail(ncclInvalidUsage, "not emulated: a reduction to elsewhere");
  return add(comm, stream, to, {.count = count, .type = type, .op = op});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, from, {.from = comm->rank, .to = peer, .count = count, .type = type});
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, to, {.from = peer, .to = comm->rank, .count = count, .type = type});
}
