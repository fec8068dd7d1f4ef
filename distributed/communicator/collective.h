// A collective as data: each rank's buffers, the check that ranks agree, the bytes that the
// algorithm moves, and the movement itself, one share per rank. Host communicators and NCCL's build
// on it. It has no threads and no clocks; any thread.
//
// The algorithm: a reduction is an all-to-all of shares, a sum by the owner of each share in rank
// order, and an all-gather of the sums. Every other collective is direct messages from each sender
// to each receiver. Rank r's share of n elements is [n r / workers, n (r + 1) / workers).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace wisp {

/// The size of each slice, in bytes.
std::vector<int64_t> sizes_of(const auto& slices) {
  std::vector<int64_t> sizes;
  for (const auto& slice : slices) sizes.push_back(slice.bytes);
  return sizes;
}
/// The bytes of all slices together.
int64_t total_bytes(const auto& slices) {
  int64_t total = 0;
  for (const auto& slice : slices) total += slice.bytes;
  return total;
}

/// The part of a call that all ranks must have in common; `bytes` only in a reduction.
struct CallLabel {
  enum class Kind { all_reduce, all_gather, all_to_all, exchange, barrier };

  Kind kind = Kind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int generation = 0;  // of the group that calls
  int64_t bytes = 0;   // bytes reduced or sent

  bool reduces() const { return kind == Kind::all_reduce; }
  bool fits(const CallLabel& other) const;
  /// Text for messages: "all_reduce of 128 bytes (f32, sum)", with the generation of a group.
  std::string str() const;
  /// Text for a rank of the calling group: "rank 2", or "its group's rank 2".
  std::string name(int rank) const;
};

/// One rank's side of a collective. A reduction works in place on `in`. The others exchange
/// messages: out[sends[q]] goes to rank q, in[receives[q]] comes from rank q.
struct Call {
  using Kind = CallLabel::Kind;
  struct Part {
    size_t first = 0, count = 0;
  };

  CallLabel label;
  bool on_device = false;  // all memory is on a device
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  std::vector<Part> sends, receives;  // indexed by peer; empty for reductions

  std::span<const ConstBytes> to(int peer) const;
  std::span<const Bytes> from(int peer) const;
  /// Whether it sends and receives no bytes.
  bool empty() const;
  /// The slices of rank `rank`'s share of a reduction.
  std::vector<Bytes> share(int rank, int workers) const;
};

/// Calls for the functions of Communicator. They throw Error for arguments that are wrong whatever
/// the other ranks pass.
Call all_reduce_call(std::span<const Bytes> data, DType dtype, ReduceOp op);
Call all_gather_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers);
Call all_to_all_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers);
Call exchange_call(std::span<const Exchange> messages, int rank, int workers);
Call barrier_call(int workers);

/// Makes the same call to another communicator.
PendingPtr pass_on(const Call& call, Communicator& communicator);

/// The first of the calls (by rank) that does not fit the others, and why. Empty if all agree.
struct Mismatch {
  int rank = 0;
  std::string why;
};
Mismatch find_mismatch(std::span<const Call> calls);

/// Text which says that a rank's call does not fit rank 0's.
std::string label_mismatch(const CallLabel& label, const CallLabel& first);
/// Compares the slices that `receiver` expects from rank `from` with those that it sends. Returns
/// the first difference; empty if there is none.
std::string mail_mismatch(const Call& receiver, int from, std::span<const int64_t> sent_bytes);

/// What a rank sends to `peers` others in a collective: `count` messages, one after the other,
/// which hold `copies` times the collective's bytes. A reduction has two messages for each peer,
/// each with one of peers + 1 shares; all else has one, with all bytes.
struct MessageSteps {
  int count = 0;
  double copies = 0.0;
};
constexpr MessageSteps reduction_steps(int peers) {
  return {2 * peers, 2.0 * peers / (peers + 1.0)};
}
constexpr MessageSteps direct_steps(int peers) { return {peers, 1.0 * peers}; }

/// Bytes that one rank sends and receives in a call, and the number of message steps.
struct Traffic {
  int64_t sent = 0, received = 0;
  int steps = 0;
};
Traffic traffic_of(const Call& call, int rank, int workers);

/// each_run() visits a rank's share of a reduction, in runs that are contiguous on every rank:
/// visit(addresses by rank, elements). each_mail() visits each slice that a rank receives in
/// another collective, unless it is sent from the same memory: visit(from, to). With two lists it
/// visits the slices between two ranks.
using VisitRun = std::function<void(std::span<std::byte* const>, int64_t)>;
void each_run(std::span<const Call> calls, int rank, const VisitRun& visit);
using VisitMail = std::function<void(const ConstBytes&, const Bytes&)>;
void each_mail(std::span<const Call> calls, int rank, const VisitMail& visit);
void each_mail(std::span<const ConstBytes> out, std::span<const Bytes> in, const VisitMail& visit);
/// A visit that copies host memory.
void copy_mail(const ConstBytes& from, const Bytes& to);

/// Does the work of rank `rank` in host memory: reduces its share, or copies the messages that it
/// receives. Different threads may move different shares at the same time.
void move_share(std::span<const Call> calls, int rank) noexcept;

}  // namespace wisp
