#include "distributed/communicator/device_moves.h"

#include <algorithm>

#include "core/copy.h"
#include "core/device/storage.h"
#include "core/loops/device_table.h"
#include "core/loops/parallel.h"
#include "distributed/communicator/reduction.h"

namespace wisp {
namespace {

constexpr int kMostRuns = 64;        // runs reduced by one launch
constexpr int kMostAddresses = 256;  // limit: an argument has 4096 bytes

struct Runs {
  int64_t ranks = 0, count = 0;        // 64 bits each: two adjacent ints may look like an address
  int64_t begin[kMostRuns + 1];        // first element of each run in the launch; then their sum
  std::byte* address[kMostAddresses];  // [run][rank]

  bool full() const { return count == kMostRuns || (count + 1) * ranks > kMostAddresses; }
  void add(std::span<std::byte* const> by_rank, int64_t n) {
    ranks = std::ssize(by_rank);
    std::copy(by_rank.begin(), by_rank.end(), address + count * ranks);
    begin[count + 1] = begin[count] + n;
    ++count;
  }
};

template <class T, class Op>
struct ReduceRuns {
  Runs runs;
  WISP_HD void operator()(int64_t i) const {
    const int64_t run = row_of(i, runs.count, [this](int64_t other) { return runs.begin[other]; });
    std::byte* const* by_rank = runs.address + run * runs.ranks;
    const int64_t at = i - runs.begin[run];
    using Value = typename Op::Value;
    auto total = static_cast<Value>(reinterpret_cast<const T*>(by_rank[0])[at]);
    for (int64_t rank = 1; rank < runs.ranks; ++rank)
      total = Op::combine(total, static_cast<Value>(reinterpret_cast<const T*>(by_rank[rank])[at]));
    for (int64_t rank = 0; rank < runs.ranks; ++rank)
      reinterpret_cast<T*>(by_rank[rank])[at] = static_cast<T>(total);
  }
};

void launch(const Stream& stream, const Runs& runs, const CallLabel& label) {
  const int64_t n = runs.begin[runs.count];
  dispatch_reduced(label.dtype, [&]<class T>(T) {
    if (label.op == ReduceOp::sum) return parallel_for(stream, n, ReduceRuns<T, AddOp<T>>{runs});
    parallel_for(stream, n, ReduceRuns<T, MaxOp<T>>{runs});
  });
}

}  // namespace

bool lies_in(const MemoryPool& pool, const Call& call) {
  int64_t device = 0, host = 0;  // number of slices
  const auto count = [&](const std::byte* data, int64_t bytes) {
    if (bytes > 0) ++(pool.holds(data) ? device : host);
  };
  for (const ConstBytes& slice : call.out) count(slice.data, slice.bytes);
  for (const Bytes& slice : call.in) count(slice.data, slice.bytes);
  WISP_CHECK(device == 0 || host == 0, call.label.str(), ": ", device,
             " slices in device memory and ", host, " in host memory, expected all in one of them");
  return device > 0;
}

void move_device_share(const Stream& stream, std::span<const Call> calls, int rank) {
  const CallLabel& label = calls[0].label;
  if (!label.reduces()) {
    return each_mail(calls, rank, [&](const ConstBytes& from, const Bytes& to) {
      copy_bytes(stream, from.data, to.data, to.bytes);
    });
  }
  if (calls.size() == 1) return;
  Runs runs{};
  each_run(calls, rank, [&](std::span<std::byte* const> by_rank, int64_t n) {
    if (runs.full()) {
      launch(stream, runs, label);
      runs = {};
    }
    runs.add(by_rank, n);
  });
  if (runs.count > 0) launch(stream, runs, label);
}

}  // namespace wisp
