// Collectives among the workers of a run. Every rank makes the same calls in the same order; only
// one thread per rank (its comm thread) calls. Tensors are lists of slices of memory and count as
// one collective. What lies on a device is read and written in the order of the rank's stream: when
// wait() returned, that work is submitted. Reductions sum in rank order, in f32 rounded once (f64
// for f64, exact for integers and max), so results do not depend on how data is cut.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "compression/compressor.h"  // ReduceOp
#include "core/base/clock.h"

namespace wisp {

class MemoryPool;
class Stream;

struct Bytes {
  std::byte* data = nullptr;
  int64_t bytes = 0;
};
struct ConstBytes {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

/// What one collective cost this rank.
struct Transfer {
  int64_t sent = 0, received = 0;  // bytes, as the communicator's algorithm moves them
  double begin_us = 0,
         end_us = 0;  // on the wire: from the moment all ranks had come until the data was there
};

/// A collective under way. Its memory must stay as it is until wait() returned.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Whether wait() would return, or throw, without blocking for long: who asks this alone keeps no
  /// limit of time of its own.
  virtual bool ready() = 0;
  /// When to ask ready() again, on the clock of now_us(): the link will have carried the bytes, it
  /// is worth another look, or ranks are late. on_progress() may tell before. Not after now_us() if
  /// it is ready, or a rank failed.
  virtual double ready_at_us() = 0;
  /// Finishes the collective. Throws Error if a rank failed (its cause and rank) or did not come in
  /// time. A collective given up without wait() never ends for the others: abort() tells them why.
  virtual Transfer wait() = 0;
};
using PendingPtr = std::unique_ptr<Pending>;

struct Exchange {
  int peer = 0;
  ConstBytes out;  // may be empty
  Bytes in;        // may be empty
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// In place: every rank gets op over ranks of each element.
  virtual PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) = 0;
  /// in[r * out.size() + s] gets rank r's out[s]. Sizes may differ by rank (the "v" form): in's
  /// sizes say what each rank sends.
  virtual PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) = 0;
  /// out[q * S + s] goes to rank q, which gets it in in[r * S + s], S = out.size() / size(). Sizes
  /// may differ.
  virtual PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) = 0;
  virtual PendingPtr broadcast(std::span<const Bytes> data, int root) = 0;
  /// Point-to-point messages with several peers at once; both sides name each other. Several slices
  /// for a peer stand together, as many as it sends. An empty list joins idly.
  virtual PendingPtr exchange(std::span<const Exchange> messages) = 0;
  virtual PendingPtr barrier() = 0;

  /// What this rank's part in all collectives that have begun sends, by the algorithm's count. For
  /// the thread that calls the collectives, or while it rests.
  virtual int64_t bytes_sent() const = 0;

  /// Ends every rank's current and later collectives with `cause`; the first caller's cause and
  /// rank win.
  virtual void abort(const std::string& cause) = 0;
  /// What ended the collectives, as their wait() says it, if this rank can hear of it by now; empty
  /// if nothing has. Does not block.
  virtual std::string hear_failure() = 0;
  /// Called, from other ranks' threads, whenever a pending collective may have become ready, or its
  /// ready_at_us() earlier; never, where ready_at_us() is always near. It must not call the
  /// communicator, nor take a lock that a caller of the communicator holds. Once this returned, the
  /// `notify` before it is not called any more.
  virtual void on_progress(std::function<void()> notify) = 0;
  /// From now on slices may lie in `pool`, of a device that all ranks share, and are moved in the
  /// order of `stream`, the rank's; both outlive the calls. False if it knows the host's alone.
  virtual bool move_devices(const Stream&, const MemoryPool&) { return false; }
};

}  // namespace wisp
