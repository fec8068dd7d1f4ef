// A collective as data: what each rank handed in, whether the ranks agree, how many bytes the
// algorithm moves, and the movement itself, one share a rank. No threads, no clocks; communicators
// on the host build on it.
//
// The algorithm: a reduction is an all-to-all of shares, summed by their owners in rank order, and
// an all-gather of the sums; every other collective is direct messages from each sender to each
// receiver. Rank r's share of n elements is [n r / workers, n (r + 1) / workers).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace wisp {

/// What must be equal on all ranks: everything but `bytes`, and those too in a reduction.
struct CallLabel {
  enum class Kind { all_reduce, all_gather, all_to_all, broadcast, exchange, barrier };

  Kind kind = Kind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  int64_t bytes = 0;  // reduced, or sent; of a broadcast, sent or received

  bool reduces() const { return kind == Kind::all_reduce; }
  bool fits(const CallLabel& other) const;
  /// For messages: "all_reduce of 128 bytes (f32, sum)".
  std::string str() const;
};

/// One rank's side of a collective. Reductions have `in`, reduced in place; the others exchange
/// mail: out[sends[q]] goes to rank q, in[receives[q]] comes from it.
struct Call {
  using Kind = CallLabel::Kind;
  struct Part {
    size_t first = 0, count = 0;
  };

  CallLabel label;
  bool on_device = false;  // where all memory is, if there is any
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  std::vector<Part> sends, receives;  // by peer; empty for reductions

  std::span<const ConstBytes> to(int peer) const;
  std::span<const Bytes> from(int peer) const;
  /// Whether it sends and receives nothing.
  bool empty() const;
  /// The slices of a reduction that are rank `rank`'s share of it.
  std::vector<Bytes> share(int rank, int workers) const;
};

/// The calls behind the functions of Communicator. They throw Error for arguments that no other
/// rank could make right.
Call all_reduce_call(std::span<const Bytes> data, DType dtype, ReduceOp op);
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

/// Says that a rank's call does not fit rank 0's.
std::string label_mismatch(const CallLabel& label, const CallLabel& first);
/// Why the mail that `receiver` expects from rank `from` is not what that rank sends, slice by
/// slice; empty if it is.
std::string mail_mismatch(const Call& receiver, int from, std::span<const int64_t> sent_bytes);

/// What a call of rank `rank` sends and receives, and in how many message steps.
struct Traffic {
  int64_t sent = 0, received = 0;
  int steps = 0;
};
Traffic traffic_of(const Call& call, int rank, int workers);

/// What moving rank `rank`'s part of a collective consists of. Of a reduction, its share in runs
/// without a gap on any rank: visit(addresses by rank, elements). Of the others, the mail that it
/// receives and does not send itself from the same place: visit(from, to).
using VisitRun = std::function<void(std::span<std::byte* const>, int64_t)>;
void each_run(std::span<const Call> calls, int rank, const VisitRun& visit);
using VisitMail = std::function<void(const ConstBytes&, const Bytes&)>;
void each_mail(std::span<const Call> calls, int rank, const VisitMail& visit);

/// Moves what rank `rank` owns, in the host's memory: its share of a reduction, or the mail that it
/// receives. Shares may be moved at the same time by different threads.
void move_share(std::span<const Call> calls, int rank) noexcept;

}  // namespace wisp
