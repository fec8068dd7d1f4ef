// Random collectives with known results, for tests of communicators.
#pragma once

#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "distributed/communicator/collective.h"

namespace wisp {

/// A random collective of 32-bit words, the same on all ranks, with a block of n words per rank.
struct Draw {
  Draw(std::mt19937& random, int world)
      : kind(static_cast<Call::Kind>(random() % 5)),
        workers(world),
        n(static_cast<int64_t>(random() % 300)),
        seed(static_cast<uint32_t>(random())) {}

  int64_t words() const { return n * workers; }
  /// Word i of a rank's input.
  uint32_t before(int64_t rank, int64_t i) const {
    return seed * static_cast<uint32_t>(i + 1) + static_cast<uint32_t>(rank);
  }
  uint32_t sum(int64_t i) const {
    uint32_t total = 0;
    for (int rank = 0; rank < workers; ++rank) total += before(rank, i);
    return total;
  }
  /// Word i of a rank's expected result.
  uint32_t after(int64_t rank, int64_t i) const {
    const int64_t block = i / n, in_block = i % n;
    switch (kind) {
      case Call::Kind::all_reduce:
        return sum(i);
      case Call::Kind::all_gather:
        return before(block, in_block);
      case Call::Kind::all_to_all:
        return before(block, rank * n + in_block);
      case Call::Kind::exchange:
        return block == (rank ^ 1) ? before(block, rank * n + in_block) : before(rank, i);
      case Call::Kind::barrier:
        break;
    }
    return before(rank, i);
  }

  const Call::Kind kind;
  const int workers;
  const int64_t n;
  const uint32_t seed;
};

inline PendingPtr begin(const Draw& draw, Communicator& comm, std::span<const ConstBytes> out,
                        std::span<const Bytes> in) {
  const int pair = comm.rank() ^ 1;
  const bool idle = pair >= draw.workers;
  const auto peer = static_cast<size_t>(idle ? 0 : pair);
  const Exchange message{pair, out[peer], in[peer]};
  switch (draw.kind) {
    case Call::Kind::all_reduce:
      return comm.all_reduce(in, DType::u32, ReduceOp::sum);
    case Call::Kind::all_gather:
      return comm.all_gather(out.first(1), in);
    case Call::Kind::all_to_all:
      return comm.all_to_all(out, in);
    case Call::Kind::exchange:
      return comm.exchange({&message, idle ? 0u : 1u});
    case Call::Kind::barrier:
      break;
  }
  return comm.barrier();
}

/// Runs the collective with random pauses of this rank, and calls `meanwhile` during it. Returns
/// the number of wrong words.
inline int wrong_words(const Draw& draw, Communicator& comm, std::mt19937& pauses,
                       const std::function<void()>& meanwhile = {}) {
  std::vector<uint32_t> sent, got;
  for (int64_t i = 0; i < draw.words(); ++i) sent.push_back(draw.before(comm.rank(), i));
  got = sent;
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  for (int64_t r = 0; r < draw.workers; ++r) {
    out.push_back({reinterpret_cast<const std::byte*>(sent.data() + r * draw.n), 4 * draw.n});
    in.push_back({reinterpret_cast<std::byte*>(got.data() + r * draw.n), 4 * draw.n});
  }
  const PendingPtr pending = begin(draw, comm, out, in);
  if (meanwhile) meanwhile();
  while (pauses() % 3 == 0) std::this_thread::yield();
  while (pauses() % 2 == 0 && !pending->ready()) std::this_thread::yield();
  pending->wait();
  int wrong = 0;
  for (int64_t i = 0; i < draw.words(); ++i)
    wrong += got[static_cast<size_t>(i)] != draw.after(comm.rank(), i);
  return wrong;
}

}  // namespace wisp
