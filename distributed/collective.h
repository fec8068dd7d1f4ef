// A collective as data: what each rank handed in, whether the ranks agree, how many bytes the
// algorithm moves, and the movement itself, one share a rank. No threads, no clocks; communicators
// on the host build on it.
//
// The algorithm: a reduction is an all-to-all of shares, summed by their owners in rank order, and
// for all_reduce an all-gather of the sums; every other collective is direct messages from each
// sender to each receiver.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace wisp {

/// One rank's side of a collective. Reductions have `in`, reduced in place; the others exchange
/// mail: out[sends[q]] goes to rank q, in[receives[q]] comes from it.
struct Call {
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast,
    exchange,
    barrier
  };
  struct Part {
    size_t first = 0, count = 0;
  };

  Kind kind = Kind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  std::vector<Part> sends, receives;  // by peer; empty for reductions

  std::span<const ConstBytes> to(int peer) const;
  std::span<const Bytes> from(int peer) const;
  /// For messages: "all_reduce of 128 bytes (f32, sum)".
  std::string str() const;
};

/// The calls behind the functions of Communicator. They throw Error for arguments that no other
/// rank could make right.
Call reduction_call(Call::Kind kind, std::span<const Bytes> data, DType dtype, ReduceOp op);
Call all_gather_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers);
Call all_to_all_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers);
Call broadcast_call(std::span<const Bytes> data, int root, int rank, int workers);
Call exchange_call(std::span<const Exchange> messages, int rank, int workers);
Call barrier_call(int workers);

/// Of `calls`, by rank, the first that does not fit with the others, and why. Empty if all agree.
struct Mismatch {
  int rank = 0;
  std::string why;
};
Mismatch find_mismatch(std::span<const Call> calls);

/// What rank `rank` of `calls` sends and receives, and in how many message steps.
struct Traffic {
  int64_t sent = 0, received = 0;
  int steps = 0;
};
Traffic traffic_of(std::span<const Call> calls, int rank);

/// Moves what rank `rank` owns: its share of a reduction, or the mail that it receives. Shares may
/// be moved at the same time by different threads.
void move_share(std::span<const Call> calls, int rank) noexcept;

}  // namespace wisp
