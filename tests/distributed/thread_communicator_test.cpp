#include "distributed/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "distributed/collective.h"

namespace wisp {
namespace {

using Memory = std::vector<std::byte>;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                             DType::i32, DType::i64, DType::u8,  DType::u32};
constexpr int kWorlds[] = {1, 2, 3, 4, 5, 8};

/// Runs work(communicator) on a thread for each rank; the error texts by rank, empty if none.
template <class Work>
std::vector<std::string> run_ranks(ThreadGroup& group, const Work& work) {
  std::vector<std::string> errors(static_cast<size_t>(group.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(group.communicator(rank));
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

template <class Work>
void run_well(ThreadGroup& group, const Work& work) {
  for (const std::string& error : run_ranks(group, work)) EXPECT_EQ(error, "");
}

std::vector<std::string> of_all(int workers, const std::string& text) {
  return std::vector<std::string>(static_cast<size_t>(workers), text);
}

/// `memory` cut into slices of the given sizes, in elements; the last slice takes the rest.
std::vector<Bytes> cut(Memory& memory, int64_t element, const std::vector<int64_t>& sizes) {
  std::vector<Bytes> slices;
  auto left = static_cast<int64_t>(memory.size());
  std::byte* data = memory.data();
  for (const int64_t size : sizes) {
    const int64_t bytes = std::min(left, size * element);
    slices.push_back({data, bytes});
    data += bytes;
    left -= bytes;
  }
  slices.push_back({data, left});
  return slices;
}

template <class T>
T value_of(double number) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(number));
  else if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(static_cast<int64_t>(number));
  else
    return static_cast<T>(number);
}

/// Calls f(T{}) for the type of a dtype.
template <class F>
void with_type(DType dtype, const F& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::u32:
      return f(uint32_t{});
  }
}

/// n random elements; sums of them round in every float type and wrap in u8.
Memory random_elements(DType dtype, int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1000.0, 1000.0);
  Memory memory(static_cast<size_t>(n * size_of(dtype)));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) {
      const T value = value_of<T>(uniform(random));
      std::memcpy(memory.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return memory;
}

/// The model: one element after the other, ranks in order.
Memory reduced(const std::vector<Memory>& inputs, DType dtype, ReduceOp op) {
  Memory result(inputs[0].size());
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t at = 0; at < result.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, inputs[0].data() + at, sizeof(T));
      if constexpr (std::is_integral_v<T>) {
        T total = element;
        for (size_t r = 1; r < inputs.size(); ++r) {
          std::memcpy(&element, inputs[r].data() + at, sizeof(T));
          total = op == ReduceOp::sum ? static_cast<T>(total + element) : std::max(total, element);
        }
        element = total;
      } else {
        using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
        Wide total = static_cast<Wide>(element);
        for (size_t r = 1; r < inputs.size(); ++r) {
          std::memcpy(&element, inputs[r].data() + at, sizeof(T));
          const Wide next = static_cast<Wide>(element);
          total = op == ReduceOp::sum ? total + next : std::max(total, next);
        }
        element = static_cast<T>(total);
      }
      std::memcpy(result.data() + at, &element, sizeof(T));
    }
  });
  return result;
}

std::vector<Memory> inputs_of(int workers, DType dtype, int64_t n) {
  std::vector<Memory> inputs;
  for (int rank = 0; rank < workers; ++rank)
    inputs.push_back(random_elements(dtype, n, static_cast<unsigned>(100 * workers + rank)));
  return inputs;
}

TEST(ThreadCommunicator, AllReduceFollowsTheModelForEveryTypeAndOp) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        std::vector<Memory> data = inputs_of(workers, dtype, 2345);
        const Memory expected = reduced(data, dtype, op);
        run_well(group, [&](Communicator& comm) {
          Memory& own = data[static_cast<size_t>(comm.rank())];
          comm.all_reduce(cut(own, size_of(dtype), {7, 0, 1025, 1, 513, 0}), dtype, op)->wait();
        });
        for (const Memory& result : data)
          EXPECT_EQ(result, expected) << name_of(dtype) << " on " << workers << " workers";
      }
    }
  }
}

TEST(ThreadCommunicator, AllReduceGivesTheSameBitsHoweverTheDataIsCut) {
  const std::vector<int64_t> cuts[] = {{}, {1000}, {0, 1, 2, 3, 5, 8, 13, 21}, {999, 0, 0, 2}};
  ThreadGroup group(4);
  std::vector<Memory> first;
  for (const std::vector<int64_t>& sizes : cuts) {
    std::vector<Memory> data = inputs_of(4, DType::f32, 3001);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.all_reduce(cut(own, 4, sizes), DType::f32, ReduceOp::sum)->wait();
    });
    if (first.empty()) first = data;
    EXPECT_EQ(data, first);
  }
}

TEST(ThreadCommunicator, AllReduceTakesFewerElementsThanWorkers) {
  for (const int64_t n : {0, 1, 3}) {
    ThreadGroup group(5);
    std::vector<Memory> data = inputs_of(5, DType::f32, n);
    const Memory expected = reduced(data, DType::f32, ReduceOp::max);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.all_reduce(cut(own, 4, {}), DType::f32, ReduceOp::max)->wait();
    });
    for (const Memory& result : data) EXPECT_EQ(result, expected);
  }
}

TEST(ThreadCommunicator, MaxKeepsANaN) {
  for (const size_t where : {0u, 1u, 2u}) {
    ThreadGroup group(3);
    std::vector<float> data = {1.0f, 2.0f, 3.0f};
    data[where] = std::numeric_limits<float>::quiet_NaN();
    run_well(group, [&](Communicator& comm) {
      float& own = data[static_cast<size_t>(comm.rank())];
      const Bytes slice{reinterpret_cast<std::byte*>(&own), 4};
      comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::max)->wait();
    });
    for (const float value : data) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ThreadCommunicator, ReduceScatterLeavesEachRankItsShare) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    const int64_t n = 1003;
    std::vector<Memory> data = inputs_of(workers, DType::f32, n);
    const std::vector<Memory> before = data;
    const Memory expected = reduced(data, DType::f32, ReduceOp::sum);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.reduce_scatter(cut(own, 4, {11, 0, 300}), DType::f32, ReduceOp::sum)->wait();
    });
    for (int64_t rank = 0; rank < workers; ++rank) {
      const auto index = static_cast<size_t>(rank);
      Memory wanted = before[index];
      const int64_t begin = 4 * (n * rank / workers), end = 4 * (n * (rank + 1) / workers);
      std::copy(expected.begin() + begin, expected.begin() + end, wanted.begin() + begin);
      EXPECT_EQ(data[index], wanted);
    }
  }
}

/// What rank `from` sends to rank `to` (-1: to all) in slice `s`: sizes differ, some are empty.
Memory mail(int from, int to, int s) {
  const int bytes = (37 * from + 11 * (to + 1) + 5 * s) % 97;
  return random_elements(DType::u8, bytes, static_cast<unsigned>(1000 * from + 10 * to + s + 10));
}

Bytes bytes_of(Memory& memory) { return {memory.data(), static_cast<int64_t>(memory.size())}; }
ConstBytes bytes_of(const Memory& memory) {
  return {memory.data(), static_cast<int64_t>(memory.size())};
}

TEST(ThreadCommunicator, AllGatherBringsEveryRanksSlicesWhateverTheirSizes) {
  constexpr int kSlices = 3;
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    run_well(group, [&](Communicator& comm) {
      std::vector<Memory> sent, got, wanted;
      for (int s = 0; s < kSlices; ++s) sent.push_back(mail(comm.rank(), -1, s));
      for (int from = 0; from < workers; ++from) {
        for (int s = 0; s < kSlices; ++s) wanted.push_back(mail(from, -1, s));
      }
      for (const Memory& memory : wanted) got.emplace_back(memory.size());
      std::vector<ConstBytes> out;
      std::vector<Bytes> in;
      int64_t own = 0, all = 0;
      for (const Memory& memory : sent) out.push_back(bytes_of(memory)), own += out.back().bytes;
      for (Memory& memory : got) in.push_back(bytes_of(memory)), all += in.back().bytes;
      const Transfer transfer = comm.all_gather(out, in)->wait();
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(transfer.sent, own * (workers - 1));
      EXPECT_EQ(transfer.received, all - own);
    });
  }
}

TEST(ThreadCommunicator, AllToAllBringsEachRankItsOwnMail) {
  constexpr int kSlices = 2;
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    run_well(group, [&](Communicator& comm) {
      std::vector<Memory> sent, got, wanted;
      int64_t to_others = 0, from_others = 0;
      for (int peer = 0; peer < workers; ++peer) {
        for (int s = 0; s < kSlices; ++s) {
          sent.push_back(mail(comm.rank(), peer, s));
          wanted.push_back(mail(peer, comm.rank(), s));
          got.emplace_back(wanted.back().size());
          if (peer == comm.rank()) continue;
          to_others += static_cast<int64_t>(sent.back().size());
          from_others += static_cast<int64_t>(wanted.back().size());
        }
      }
      std::vector<ConstBytes> out;
      std::vector<Bytes> in;
      for (const Memory& memory : sent) out.push_back(bytes_of(memory));
      for (Memory& memory : got) in.push_back(bytes_of(memory));
      const Transfer transfer = comm.all_to_all(out, in)->wait();
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(transfer.sent, to_others);
      EXPECT_EQ(transfer.received, from_others);
    });
  }
}

TEST(ThreadCommunicator, BroadcastBringsTheRootsData) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    for (int root = 0; root < workers; ++root) {
      std::vector<Memory> data = inputs_of(workers, DType::u8, 1001);
      const Memory expected = data[static_cast<size_t>(root)];
      run_well(group, [&](Communicator& comm) {
        Memory& own = data[static_cast<size_t>(comm.rank())];
        const Transfer transfer = comm.broadcast(cut(own, 1, {0, 13, 500}), root)->wait();
        EXPECT_EQ(transfer.sent, comm.rank() == root ? 1001 * (workers - 1) : 0);
        EXPECT_EQ(transfer.received, comm.rank() == root ? 0 : 1001);
      });
      for (const Memory& result : data) EXPECT_EQ(result, expected);
    }
  }
}

TEST(ThreadCommunicator, ExchangeServesPairsWhileOthersAreIdle) {
  ThreadGroup group(5);
  run_well(group, [&](Communicator& comm) {  // 0 -> 1 one way, 2 <-> 3, 4 idle
    const int peers[] = {1, 0, 3, 2, -1};
    const int peer = peers[comm.rank()];
    const Memory sent = comm.rank() == 1 || peer < 0 ? Memory() : mail(comm.rank(), peer, 0);
    const Memory wanted = comm.rank() == 0 || peer < 0 ? Memory() : mail(peer, comm.rank(), 0);
    Memory got(wanted.size());
    const Exchange message{peer, bytes_of(sent), bytes_of(got)};
    const std::span<const Exchange> messages(&message, peer < 0 ? 0 : 1);
    const Transfer transfer = comm.exchange(messages)->wait();
    EXPECT_EQ(got, wanted);
    EXPECT_EQ(transfer.sent, static_cast<int64_t>(sent.size()));
    EXPECT_EQ(transfer.received, static_cast<int64_t>(wanted.size()));
  });
}

TEST(ThreadCommunicator, ExchangeServesSeveralPeersAtOnce) {
  ThreadGroup group(5);
  run_well(group, [&](Communicator& comm) {  // a ring: both neighbours
    const int peers[] = {(comm.rank() + 1) % 5, (comm.rank() + 4) % 5};
    std::vector<Memory> sent, wanted, got;
    std::vector<Exchange> messages;
    for (const int peer : peers) {
      sent.push_back(mail(comm.rank(), peer, 0));
      wanted.push_back(mail(peer, comm.rank(), 0));
      got.emplace_back(wanted.back().size());
    }
    for (size_t i = 0; i < 2; ++i)
      messages.push_back({peers[i], bytes_of(std::as_const(sent[i])), bytes_of(got[i])});
    comm.exchange(messages)->wait();
    EXPECT_EQ(got, wanted);
  });
}

TEST(ThreadCommunicator, CountsTheBytesOfReductions) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    for (const int64_t n : {0, 1, 7, 1000, 4001}) {
      std::atomic<int64_t> all_reduce{0}, reduce_scatter{0};
      run_well(group, [&](Communicator& comm) {
        const int64_t own = n * (comm.rank() + 1) / workers - n * comm.rank() / workers;
        std::vector<double> data(static_cast<size_t>(n), 1.0);
        const Bytes slice{reinterpret_cast<std::byte*>(data.data()), 8 * n};
        Transfer transfer = comm.all_reduce({&slice, 1}, DType::f64, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, 8 * (n - own + (workers - 1) * own));
        EXPECT_EQ(transfer.received, transfer.sent);
        all_reduce += transfer.sent;
        transfer = comm.reduce_scatter({&slice, 1}, DType::f64, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, 8 * (n - own));
        EXPECT_EQ(transfer.received, 8 * (workers - 1) * own);
        reduce_scatter += transfer.sent;
        transfer = comm.barrier()->wait();
        EXPECT_EQ(transfer.sent + transfer.received, 0);
      });
      EXPECT_EQ(all_reduce, 2 * (workers - 1) * 8 * n);  // 2 (N-1) / N of the bytes, N times
      EXPECT_EQ(reduce_scatter, (workers - 1) * 8 * n);
    }
  }
}

/// One random collective of 32-bit words, the same on all ranks: a block of n words for each rank.
struct Draw {
  Draw(std::mt19937& random, int world)
      : kind(static_cast<Call::Kind>(random() % 7)),
        workers(world),
        n(static_cast<int64_t>(random() % 300)),
        seed(static_cast<uint32_t>(random())),
        root(static_cast<int>(random() % static_cast<unsigned>(world))) {}

  int64_t words() const { return n * workers; }
  /// Word i that a rank brings.
  uint32_t before(int64_t rank, int64_t i) const {
    return seed * static_cast<uint32_t>(i + 1) + static_cast<uint32_t>(rank);
  }
  uint32_t sum(int64_t i) const {
    uint32_t total = 0;
    for (int rank = 0; rank < workers; ++rank) total += before(rank, i);
    return total;
  }
  /// Word i that a rank must have in the end.
  uint32_t after(int64_t rank, int64_t i) const {
    const int64_t block = i / n, in_block = i % n;
    switch (kind) {
      case Call::Kind::all_reduce:
        return sum(i);
      case Call::Kind::reduce_scatter:
        return block == rank ? sum(i) : before(rank, i);
      case Call::Kind::all_gather:
        return before(block, in_block);
      case Call::Kind::all_to_all:
        return before(block, rank * n + in_block);
      case Call::Kind::broadcast:
        return before(root, i);
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
  const int root;
};

PendingPtr begin(const Draw& draw, Communicator& comm, std::span<const ConstBytes> out,
                 std::span<const Bytes> in) {
  const int pair = comm.rank() ^ 1;
  const auto peer = static_cast<size_t>(pair);
  const Exchange message{pair, out[peer], in[peer]};
  switch (draw.kind) {
    case Call::Kind::all_reduce:
      return comm.all_reduce(in, DType::u32, ReduceOp::sum);
    case Call::Kind::reduce_scatter:
      return comm.reduce_scatter(in, DType::u32, ReduceOp::sum);
    case Call::Kind::all_gather:
      return comm.all_gather(out.first(1), in);
    case Call::Kind::all_to_all:
      return comm.all_to_all(out, in);
    case Call::Kind::broadcast:
      return comm.broadcast(in, draw.root);
    case Call::Kind::exchange:
      return comm.exchange({&message, 1});
    case Call::Kind::barrier:
      break;
  }
  return comm.barrier();
}

/// Runs the collective, with random pauses of this rank; how many words came out wrong.
int wrong_words(const Draw& draw, Communicator& comm, std::mt19937& pauses) {
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
  while (pauses() % 3 == 0) std::this_thread::yield();
  while (pauses() % 2 == 0 && !pending->ready()) std::this_thread::yield();
  pending->wait();
  int wrong = 0;
  for (int64_t i = 0; i < draw.words(); ++i)
    wrong += got[static_cast<size_t>(i)] != draw.after(comm.rank(), i);
  return wrong;
}

TEST(ThreadCommunicator, SurvivesThousandsOfRandomCollectives) {
  ThreadGroup group(4);
  run_well(group, [&](Communicator& comm) {
    std::mt19937 shared(1), pauses(static_cast<unsigned>(comm.rank()) + 2);
    int wrong = 0;
    for (int i = 0; i < 3000; ++i) wrong += wrong_words(Draw(shared, 4), comm, pauses);
    EXPECT_EQ(wrong, 0);
  });
}

TEST(ThreadCommunicator, IsReadyOnceAllHaveComeAndSaysSo) {
  ThreadGroup group(2);
  Communicator& first = group.communicator(0);
  int notified = 0;
  first.on_progress([&] { ++notified; });
  PendingPtr pending = first.barrier();
  EXPECT_FALSE(pending->ready());
  EXPECT_EQ(pending->ready_at_us(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(notified, 0);
  PendingPtr other = group.communicator(1).barrier();
  EXPECT_EQ(notified, 1);
  EXPECT_TRUE(pending->ready());
  EXPECT_TRUE(other->ready());
  pending->wait();
  other->wait();
}

TEST(ThreadCommunicator, ARankFinishesWhileTheOthersCompute) {
  ThreadGroup group(2);
  std::vector<float> data = {1.0f, 2.0f};
  std::vector<PendingPtr> pending;
  for (size_t rank = 0; rank < 2; ++rank) {
    const Bytes slice{reinterpret_cast<std::byte*>(&data[rank]), 4};
    pending.push_back(group.communicator(static_cast<int>(rank))
                          .all_reduce({&slice, 1}, DType::f32, ReduceOp::sum));
  }
  pending[0]->wait();  // rank 1 has come, but does not wait
  EXPECT_EQ(data[0], 3.0f);
  pending[1]->wait();
  EXPECT_EQ(data[1], 3.0f);
}

TEST(ThreadCommunicator, RefusesASecondCollectiveBeforeTheFirstIsOver) {
  ThreadGroup group(2);
  const PendingPtr pending = group.communicator(0).barrier();
  EXPECT_THROW(group.communicator(0).barrier(), Error);
}

TEST(ThreadCommunicator, RefusesArgumentsThatCannotBeRight) {
  ThreadGroup group(2);
  Communicator& comm = group.communicator(0);
  Memory memory(16);
  const Bytes odd{memory.data(), 6}, shifted{memory.data() + 1, 8};
  const Exchange self{0, {}, {}}, twice[] = {{1, {}, {}}, {1, {}, {}}};
  const ConstBytes out{memory.data(), 4};
  EXPECT_THROW(comm.all_reduce({&odd, 1}, DType::f32, ReduceOp::sum), Error);
  EXPECT_THROW(comm.all_reduce({&shifted, 1}, DType::f32, ReduceOp::sum), Error);
  EXPECT_THROW(comm.all_gather({&out, 1}, {&odd, 1}), Error);
  EXPECT_THROW(comm.all_to_all({&out, 1}, {&odd, 1}), Error);
  EXPECT_THROW(comm.broadcast({&odd, 1}, 2), Error);
  EXPECT_THROW(comm.exchange({&self, 1}), Error);
  EXPECT_THROW(comm.exchange(twice), Error);
  EXPECT_THROW(ThreadGroup(0), Error);
  EXPECT_THROW(group.communicator(2), Error);
}

TEST(ThreadCommunicator, SaysWhoCalledWhatIfRanksDisagree) {
  ThreadGroup group(3);
  const auto errors = run_ranks(group, [](Communicator& comm) {
    Memory memory(64);
    const Bytes slice = bytes_of(memory);
    if (comm.rank() == 2)
      comm.broadcast({&slice, 1}, 1)->wait();
    else
      comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
  });
  EXPECT_EQ(errors, of_all(3,
                           "rank 2: calls broadcast of 64 bytes from rank 1 where rank 0 calls "
                           "all_reduce of 64 bytes (f32, sum)"));
}

TEST(ThreadCommunicator, SaysWhichSizesDoNotFit) {
  ThreadGroup reductions(2), gathers(2);
  auto errors = run_ranks(reductions, [](Communicator& comm) {
    Memory memory(comm.rank() == 0 ? 8 : 16);
    const Bytes slice = bytes_of(memory);
    comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::max)->wait();
  });
  EXPECT_EQ(errors, of_all(2,
                           "rank 1: calls all_reduce of 16 bytes (f32, max) where rank 0 calls "
                           "all_reduce of 8 bytes (f32, max)"));
  errors = run_ranks(gathers, [](Communicator& comm) {
    Memory memory(64);
    const ConstBytes out{memory.data(), comm.rank() == 0 ? 12 : 8};
    const Bytes in[] = {{memory.data() + 16, 12}, {memory.data() + 32, comm.rank() == 0 ? 9 : 8}};
    comm.all_gather({&out, 1}, in)->wait();
  });
  EXPECT_EQ(errors, of_all(2,
                           "rank 0: all_gather of 12 bytes expects 9 bytes in slice 0 from rank 1, "
                           "which sends 8"));
}

TEST(ThreadCommunicator, AbortEndsEveryWaitWithTheFirstCause) {
  ThreadGroup group(4);
  std::atomic<int> notified{0};
  const auto errors = run_ranks(group, [&](Communicator& comm) {
    if (comm.rank() != 3) {
      comm.on_progress([&] { ++notified; });
      comm.barrier()->wait();
    } else {
      comm.abort("out of ideas");
      comm.abort("second thoughts");
      comm.barrier()->wait();
    }
  });
  EXPECT_EQ(errors, of_all(4, "rank 3: out of ideas"));
  EXPECT_EQ(group.failure(), "rank 3: out of ideas");
  PendingPtr later = group.communicator(1).barrier();
  EXPECT_TRUE(later->ready());
  EXPECT_THROW(later->wait(), Error);
}

TEST(ThreadCommunicator, NamesTheRanksThatDoNotCome) {
  ThreadGroup group(4, {}, 0.02);
  const auto errors = run_ranks(group, [](Communicator& comm) {
    if (comm.rank() == 0) comm.barrier()->wait();
  });
  EXPECT_EQ(errors[0],
            "rank 0: barrier: waited 0.02 s for rank 1, rank 2, rank 3, which have not come");
}

TEST(ThreadCommunicator, ACollectiveGivenUpIsFinishedByNobody) {
  ThreadGroup group(2, {}, 0.02);
  Memory memory(8);
  {
    Memory gone(8);
    const Bytes slice = bytes_of(gone);
    group.communicator(1).all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
  }
  const Bytes slice = bytes_of(memory);
  PendingPtr pending = group.communicator(0).all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
  try {
    pending->wait();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "rank 0: all_reduce of 8 bytes (f32, sum): waited 0.02 s for rank 1, which gave up");
  }
}

TEST(ThreadCommunicator, AnEmulatedLinkTakesItsTime) {
  constexpr double kClock = 1e-3;  // differences of two times, doubles, round
  const LinkSpec link{.gbit_per_s = 0.1, .latency_us = 100.0};
  ThreadGroup group(4, link);
  run_well(group, [&](Communicator& comm) {
    Memory memory(40'000);
    const Bytes slice = bytes_of(memory);
    Transfer transfer = comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
    EXPECT_GE(transfer.end_us - transfer.begin_us, 600.0 + 60'000 * 8 / 100.0 - kClock);
    PendingPtr pending = comm.broadcast({&slice, 1}, 2);
    const double least = 300.0 + 120'000 * 8 / 100.0 - kClock;  // the root sends three copies
    transfer = pending->wait();
    EXPECT_GE(transfer.end_us - transfer.begin_us, least);
    const Bytes in[] = {{memory.data(), 10'000},
                        {memory.data() + 10'000, 10'000},
                        {memory.data() + 20'000, 10'000},
                        {memory.data() + 30'000, 10'000}};
    const Memory copy(memory.begin(), memory.begin() + 10'000);
    transfer = comm.all_to_all(std::vector<ConstBytes>(4, bytes_of(copy)), in)->wait();
    EXPECT_GE(transfer.end_us - transfer.begin_us, 300.0 + 30'000 * 8 / 100.0 - kClock);
    transfer = comm.exchange({})->wait();
    EXPECT_EQ(transfer.sent, 0);
  });
}

TEST(ThreadCommunicator, KnowsWhenTheLinkWillBeDone) {
  ThreadGroup group(2, {.latency_us = 3e9});
  const PendingPtr first = group.communicator(0).barrier();
  const PendingPtr second = group.communicator(1).barrier();
  EXPECT_FALSE(first->ready());
  EXPECT_GT(first->ready_at_us(), 2e9);
  EXPECT_EQ(first->ready_at_us(), second->ready_at_us());
  group.abort(1, "stop");
  EXPECT_TRUE(first->ready());
  EXPECT_THROW(first->wait(), Error);
}

}  // namespace
}  // namespace wisp
