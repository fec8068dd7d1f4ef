// Tests of what all collectives have in common: progress, refusals, failures, emulated links.
#include "distributed/communicator/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace wisp {
namespace {

TEST(ThreadCommunicator, IsReadyOnceAllHaveComeAndSaysSo) {
  ThreadGroup group(2);
  Communicator& first = group.communicator(0);
  int notified = 0;
  first.on_progress([&] { ++notified; });
  PendingPtr pending = first.barrier();
  EXPECT_FALSE(pending->ready());
  EXPECT_GT(pending->ready_at_us(), now_us());
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
  pending[0]->wait();  // rank 1 has arrived, but does not wait
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
  ThreadGroup group(3);
  Communicator& comm = group.communicator(0);
  Memory memory(16);
  const Bytes odd{memory.data(), 6}, shifted{memory.data() + 1, 8};
  const Exchange self{0, {}, {}}, nobody{3, {}, {}},
      twice[] = {{1, {}, {}}, {2, {}, {}}, {1, {}, {}}};
  const ConstBytes out{memory.data(), 4};
  EXPECT_THROW(comm.all_reduce({&odd, 1}, DType::f32, ReduceOp::sum), Error);
  EXPECT_THROW(comm.all_reduce({&shifted, 1}, DType::f32, ReduceOp::sum), Error);
  EXPECT_THROW(comm.all_gather({&out, 1}, {&odd, 1}), Error);
  EXPECT_THROW(comm.all_to_all({&out, 1}, {&odd, 1}), Error);
  EXPECT_THROW(comm.exchange({&nobody, 1}), Error);
  EXPECT_THROW(comm.exchange({&self, 1}), Error);
  EXPECT_THROW(comm.exchange(twice), Error);
  EXPECT_THROW(ThreadGroup(0), Error);
  EXPECT_THROW(group.communicator(3), Error);
}

TEST(ThreadCommunicator, SaysWhoCalledWhatIfRanksDisagree) {
  ThreadGroup group(3);
  const auto errors = run_ranks(group, [](Communicator& comm) {
    Memory memory(64);
    const Bytes slice = bytes_of(memory);
    const Exchange message{0, {slice.data, slice.bytes}, {}};
    if (comm.rank() == 2)
      comm.exchange({&message, 1})->wait();
    else
      comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
  });
  EXPECT_EQ(errors, of_all(3,
                           "rank 2: calls exchange of 64 bytes where rank 0 calls "
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

/// Once ranks are late, ready() is true and wait() names them at once. A caller that polls needs no
/// time limit of its own.
TEST(ThreadCommunicator, IsReadyToNameTheRanksThatAreLate) {
  ThreadGroup group(2, {}, 0.002);
  const PendingPtr pending = group.communicator(0).barrier();
  while (!pending->ready()) {
    EXPECT_LT(pending->ready_at_us(), now_us() + 2e3);
    std::this_thread::yield();
  }
  EXPECT_LE(pending->ready_at_us(), now_us());
  EXPECT_EQ(error_of([&] { pending->wait(); }),
            "rank 0: barrier: waited 0.002 s for rank 1, which has not come");
}

TEST(ThreadCommunicator, ARankThatComesWhenTheTimeIsUpIsNotLate) {
  ThreadGroup group(2, {}, 0.002);
  const PendingPtr pending = group.communicator(0).barrier();
  while (!pending->ready()) std::this_thread::yield();
  const PendingPtr other = group.communicator(1).barrier();
  pending->wait();
  other->wait();
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
  constexpr double kClock = 1e-3;  // rounding of the difference of two times
  const LinkSpec link{.gbit_per_s = 0.1, .latency_us = 100.0};
  ThreadGroup group(4, link);
  const auto errors = run_ranks(group, [&](Communicator& comm) {
    Memory memory(40'000);
    const Bytes slice = bytes_of(memory);
    Transfer transfer = comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
    EXPECT_GE(transfer.end_us - transfer.begin_us, 600.0 + 60'000 * 8 / 100.0 - kClock);
    const ConstBytes out{slice.data, comm.rank() == 2 ? slice.bytes : 0};
    const std::vector<Bytes> from = {{}, {}, slice, {}};
    transfer = comm.all_gather({&out, 1}, from)->wait();
    const double least = 300.0 + 120'000 * 8 / 100.0 - kClock;  // rank 2 sends three copies
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
  EXPECT_EQ(errors, of_all(4, ""));
}

TEST(ThreadCommunicator, AbortInOneGroupEndsTheOthers) {
  ThreadGroup group(4);
  std::atomic<int> waiting{0};
  const auto errors = run_ranks(group, [&](Communicator& comm) {
    const std::unique_ptr<Communicator> half = comm.split(comm.rank() / 2);
    const std::unique_ptr<Communicator> alone = half->split(half->rank());
    if (comm.rank() < 3) {  // rank 0 waits for rank 1, which waits for all
      const PendingPtr pending = (comm.rank() == 1 ? comm : *half).barrier();
      ++waiting;
      pending->wait();
    }
    while (waiting < 3) std::this_thread::yield();
    alone->abort("out of ideas");
    EXPECT_EQ(comm.hear_failure(), "rank 3: out of ideas");
    half->barrier()->wait();
  });
  EXPECT_EQ(errors, of_all(4, "rank 3: out of ideas"));
  EXPECT_EQ(group.failure(), "rank 3: out of ideas");
}

TEST(ThreadCommunicator, AGroupNamesRanksAsTheRunDoes) {
  const auto errors_of = [](const std::function<void(Communicator&)>& work) {
    ThreadGroup group(4, {}, 0.5);
    return run_ranks(group, [&](Communicator& comm) {
      const std::unique_ptr<Communicator> half = comm.split(comm.rank() % 2);
      if (half->roster().ranks[0] == 1) work(*half);  // ranks 1 and 3
    });
  };
  std::vector<std::string> errors = errors_of([](Communicator& half) {
    if (half.rank() == 0) half.barrier()->wait();
  });
  EXPECT_EQ(errors[1],
            "rank 1: barrier in generation 1: waited 0.5 s for rank 3, which has not come");
  errors = errors_of(
      [](Communicator& half) { (half.rank() == 0 ? half.barrier() : half.exchange({}))->wait(); });
  EXPECT_EQ(errors[3],
            "rank 3: calls exchange of 0 bytes in generation 1 where its group's rank 0 calls "
            "barrier in generation 1");
}

TEST(ThreadCommunicator, ARankHearsOfProgressInItsGroups) {
  ThreadGroup group(3);
  std::vector<std::unique_ptr<Communicator>> groups(3);
  run_ranks(group, [&](Communicator& comm) {
    groups[static_cast<size_t>(comm.rank())] = comm.split(int{comm.rank() < 2});
  });
  int first = 0, other = 0;
  group.communicator(0).on_progress([&] { ++first; });
  group.communicator(2).on_progress([&] { ++other; });
  const PendingPtr pending = groups[0]->barrier(), last = groups[1]->barrier();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(other, 0);
  pending->wait();
  last->wait();
}

TEST(ThreadCommunicator, ARankHearsThatAnotherGroupsCallsDiffer) {
  ThreadGroup group(3);
  std::vector<std::unique_ptr<Communicator>> groups(3);
  run_ranks(group, [&](Communicator& comm) {
    groups[static_cast<size_t>(comm.rank())] = comm.split(int{comm.rank() < 2});
  });
  int heard = 0;
  group.communicator(2).on_progress([&] { ++heard; });
  const PendingPtr waiting = group.communicator(2).barrier();
  const PendingPtr first = groups[0]->barrier(), other = groups[1]->exchange({});
  EXPECT_EQ(heard, 1);
  EXPECT_TRUE(waiting->ready());
  EXPECT_EQ(error_of([&] { waiting->wait(); }),
            "rank 1: calls exchange of 0 bytes in generation 1 where its group's rank 0 calls "
            "barrier in generation 1");
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
