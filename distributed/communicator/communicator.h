// Collectives among the workers of a run. Every rank makes the same calls in the same order, all
// from one thread, its comm thread. Groups of ranks have communicators of their own, whose
// collectives may be under way beside others. The collectives of all groups of the run have one
// order, in which each rank begins and awaits its own. A call takes a list of slices, so one
// collective moves many tensors. Device memory is read and written in the order of the rank's
// stream; when wait() has returned, this work is submitted. Sums are in rank order, in f32 and
// rounded once (f64 for f64, exact for integers), so results do not depend on the cut of the data.
// NCCL's differ (nccl_communicator.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compression/message.h"
#include "core/base/clock.h"

namespace wisp {

class MemoryPool;
class Stream;

/// A slice of memory, of the host or a device; a ConstBytes is only read.
struct ConstBytes {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};
struct Bytes {
  std::byte* data = nullptr;
  int64_t bytes = 0;

  operator ConstBytes() const { return {data, bytes}; }
};

/// The cost of one collective for this rank.
struct Transfer {
  int64_t sent = 0, received = 0;  // bytes moved by the communicator's algorithm
  double begin_us = 0,
         end_us = 0;  // on the wire: from the last rank's arrival to the data's
};

/// A collective under way. Its memory must not change until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Whether wait() would return or throw without blocking for long. A caller that only polls
  /// ready() needs no time limit of its own.
  virtual bool ready() = 0;
  /// The time for the next call of ready(), on the clock of now_us(): the link has carried the
  /// bytes, the next look is due, or a late rank exceeds the limit. on_progress() may announce it
  /// earlier. It is not after now_us() if the collective is ready or a rank failed.
  virtual double ready_at_us() = 0;
  /// Finishes the collective. Throws Error with rank and cause if a rank failed or came too late.
  /// If a collective is dropped without wait(), the others never finish it; abort() tells them why.
  virtual Transfer wait() = 0;
};
using PendingPtr = std::unique_ptr<Pending>;

/// A slice sent to one peer and one received from it.
struct Exchange {
  int peer = 0;
  ConstBytes out;  // may be empty
  Bytes in;        // may be empty
};

/// The ranks that a communicator connects: all of a run, or a group of them.
struct Roster {
  std::vector<int> ranks;  // the ranks' numbers in the run, ascending
  int rank = 0;            // this rank's index among them
  int generation = 0;      // 0: all ranks of the run; each split makes the next generation

  /// This rank's number in the run.
  int in_run() const { return ranks[static_cast<size_t>(rank)]; }
};

/// All ranks of a run, as `rank` sees them.
inline Roster whole_roster(int rank, int size) {
  Roster roster{.rank = rank};
  for (int other = 0; other < size; ++other) roster.ranks.push_back(other);
  return roster;
}

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const Roster& roster() const = 0;
  int rank() const { return roster().rank; }
  int size() const { return static_cast<int>(roster().ranks.size()); }
  /// The communicator of the ranks that pass the same `colour`, in the order of their ranks here.
  /// All ranks call it together; it waits for them. This communicator outlives the new one. The
  /// ranks of a group destroy it together, and all groups in one order. When one is made or
  /// destroyed, none of the rank's collectives is under way. A rank does not use two groups
  /// together whose generations differ by a multiple of 4093: their messages would end the run.
  virtual std::unique_ptr<Communicator> split(int colour) = 0;

  /// Reduces in place: every rank gets op over all ranks of each element.
  virtual PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) = 0;
  /// in[r * out.size() + s] gets rank r's out[s]. Sizes may differ by rank (the "v" form): the
  /// sizes of `in` say what each rank sends.
  virtual PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) = 0;
  /// out[q * S + s] goes to rank q, whose in[r * S + s] receives it from rank r; S = out.size() /
  /// size(). Sizes may differ.
  virtual PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) = 0;
  /// Point-to-point messages with several peers at once; both sides name each other. Several slices
  /// for one peer are adjacent, and their number is the same on both sides. An empty list takes
  /// part without messages.
  virtual PendingPtr exchange(std::span<const Exchange> messages) = 0;
  /// Ends when every rank has called it.
  virtual PendingPtr barrier() = 0;

  /// Bytes that this rank sends in all collectives begun so far, by the algorithm's count. Called
  /// by the thread that calls the collectives, or while it rests.
  virtual int64_t bytes_sent() const = 0;

  /// Ends the current and later collectives of all ranks of the run, in all groups, with `cause`.
  /// The cause and rank of the first caller win.
  virtual void abort(const std::string& cause) = 0;
  /// The failure that ended the collectives, with the text of wait()'s Error, if this rank can know
  /// it by now; else empty. Does not block.
  virtual std::string hear_failure() = 0;
  /// Sets a function that other ranks' threads call whenever a pending collective may have become
  /// ready, or its ready_at_us() may be earlier. A communicator whose ready_at_us() is always near
  /// never calls it. A rank has one such function for all its groups. `notify` must not call the
  /// communicator, nor take a lock that a caller of the communicator holds. Once on_progress() has
  /// returned, the previous `notify` is not called.
  virtual void on_progress(std::function<void()> notify) = 0;
  /// Allows slices in `pool`, memory of a device that all ranks share. They are moved in the order
  /// of the rank's `stream`. Both outlive the calls. Returns false if this is not supported.
  virtual bool move_devices(const Stream&, const MemoryPool&) { return false; }
};

}  // namespace wisp
