// Tests of groups: collectives among some of the ranks. They run over threads and under mpirun.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/random_collective.h"
#include "tests/support/ranks.h"

namespace wisp {
namespace {

using Colour = int (*)(int rank);

constexpr Colour kColours[] = {
    [](int rank) { return rank / 2; },        // neighbours
    [](int rank) { return -(rank % 2); },     // every second rank
    [](int rank) { return int{rank == 3}; },  // one rank alone
    [](int) { return 7; },                    // all
    [](int rank) { return rank; },            // each rank alone
};

int group_workers() { return world().processes() ? world().size : 4; }

/// The run's ranks of a colour, as bits.
uint32_t bits_of(Colour colour, int of_rank, int workers) {
  uint32_t bits = 0;
  for (int rank = 0; rank < workers; ++rank)
    bits |= uint32_t{colour(rank) == colour(of_rank)} << rank;
  return bits;
}

uint32_t sum(Communicator& comm, uint32_t value) {
  const Bytes slice{reinterpret_cast<std::byte*>(&value), sizeof value};
  comm.all_reduce({&slice, 1}, DType::u32, ReduceOp::sum)->wait();
  return value;
}

TEST(CommunicatorGroups, SumOverTheirOwnRanks) {
  const int workers = group_workers();
  for (const Colour colour : kColours) {
    run_well(workers, [&](Communicator& comm) {
      const std::unique_ptr<Communicator> group = comm.split(colour(comm.rank()));
      std::vector<int> ranks;
      for (int rank = 0; rank < workers; ++rank)
        if (colour(rank) == colour(comm.rank())) ranks.push_back(rank);
      EXPECT_EQ(group->roster().ranks, ranks);
      EXPECT_EQ(group->roster().in_run(), comm.rank());
      const uint32_t own = 1u << comm.rank();
      EXPECT_EQ(sum(*group, own), bits_of(colour, comm.rank(), workers));
      EXPECT_EQ(sum(comm, own), (1u << workers) - 1);
      EXPECT_EQ(sum(*group, own), bits_of(colour, comm.rank(), workers));
    });
  }
}

TEST(CommunicatorGroups, CountTheirOwnBytes) {
  run_well(group_workers(), [&](Communicator& comm) {
    const std::unique_ptr<Communicator> group = comm.split(comm.rank() % 2);
    const int64_t before = comm.bytes_sent();
    Memory data(4 * 60);  // shares of any few ranks are whole elements
    const Bytes slice = bytes_of(data);
    const Transfer transfer = group->all_reduce({&slice, 1}, DType::u32, ReduceOp::sum)->wait();
    EXPECT_EQ(transfer.sent, 2 * slice.bytes / group->size() * (group->size() - 1));
    EXPECT_EQ(group->bytes_sent(), transfer.sent);
    EXPECT_EQ(comm.bytes_sent(), before);
  });
}

TEST(CommunicatorGroups, MayBeSplitAgain) {
  run_well(group_workers(), [&](Communicator& comm) {
    EXPECT_EQ(comm.roster().generation, 0);
    const int before = comm.split(0)->roster().generation;  // processes have split in other tests
    EXPECT_GE(before, 1);
    const std::unique_ptr<Communicator> half = comm.split(comm.rank() / 2);
    const std::unique_ptr<Communicator> alone = half->split(half->rank());
    EXPECT_EQ(half->roster().generation, before + 1);
    EXPECT_EQ(alone->roster().generation, before + 2);
    EXPECT_EQ(alone->size(), 1);
    EXPECT_EQ(alone->roster().in_run(), comm.rank());
    EXPECT_EQ(sum(*alone, 5u), 5u);
    // half 0 splits once more, so its ranks are ahead, and the others follow them
    std::unique_ptr<Communicator> same;
    if (comm.rank() < 2) same = half->split(0);
    const std::unique_ptr<Communicator> all = comm.split(0);
    EXPECT_EQ(all->roster().generation, before + 4);
    EXPECT_EQ(sum(*all, 1u), static_cast<uint32_t>(comm.size()));
  });
}

/// A random collective of a group is under way within one of all ranks, and one of a part of the
/// group within that.
TEST(CommunicatorGroups, KeepCollectivesApartThatAreUnderWayAtOnce) {
  const int workers = group_workers();
  for (const Colour colour : kColours) {
    run_well(workers, [&](Communicator& comm) {
      const std::unique_ptr<Communicator> group = comm.split(colour(comm.rank()));
      const std::unique_ptr<Communicator> part = group->split(group->rank() / 2);
      std::mt19937 of_all(1), of_group(2), of_part(3);  // the same on the ranks of each
      std::mt19937 pauses(static_cast<unsigned>(comm.rank()) + 4);
      int wrong = 0;
      for (int i = 0; i < 200; ++i) {
        const Draw draw(of_all, workers), within(of_group, group->size());
        const Draw innermost(of_part, part->size());
        wrong += wrong_words(draw, comm, pauses, [&] {
          wrong += wrong_words(within, *group, pauses,
                               [&] { wrong += wrong_words(innermost, *part, pauses); });
        });
      }
      EXPECT_EQ(wrong, 0);
    });
  }
}

TEST(CommunicatorGroups, AreReadyInAnyOrder) {
  run_well(group_workers(), [&](Communicator& comm) {
    const std::unique_ptr<Communicator> group = comm.split(comm.rank() % 2);
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    for (int i = 0; i < 100; ++i) {
      const PendingPtr pending[] = {comm.barrier(), group->barrier()};
      for (bool ready[] = {false, false}; !ready[0] || !ready[1];) {
        const size_t which = random() % 2;
        ready[which] = pending[which]->ready();
        std::this_thread::yield();
      }
      for (const PendingPtr& each : pending) each->wait();
    }
  });
}

/// A split of the run, and the ranks that begin a barrier of their group.
struct Split {
  Colour colour;
  bool (*begins)(int rank);
};

/// The error of rank 0 of five, which waits for all of them while others wait in groups.
std::string error_beside(const std::vector<Split>& splits) {
  constexpr int kRanks = 5;
  ThreadGroup run(kRanks, {}, 0.3);
  std::vector<std::vector<std::unique_ptr<Communicator>>> groups(kRanks);
  run_ranks(run, [&](Communicator& comm) {
    for (const Split& split : splits)
      groups[static_cast<size_t>(comm.rank())].push_back(comm.split(split.colour(comm.rank())));
  });
  std::vector<PendingPtr> pending;
  for (size_t s = 0; s < splits.size(); ++s) {
    for (int rank = 0; rank < kRanks; ++rank)
      if (splits[s].begins(rank))
        pending.push_back(groups[static_cast<size_t>(rank)][s]->barrier());
  }
  const PendingPtr own = run.communicator(0).barrier();
  return error_of([&] { own->wait(); });
}

/// A rank that waits for others in its own group is not named by those that wait for it.
TEST(CommunicatorGroups, ATimeoutNamesOnlyWhoKeepsAllWaiting) {
  if (world().processes()) GTEST_SKIP() << "processes: soak_fault_test";
  const std::string begin = "rank 0: barrier: waited 0.3 s for ";
  const Colour trio = [](int rank) { return int{rank > 0 && rank < 4}; };
  // ranks 1 and 2 wait for 3 in their group of three, and rank 4 is nowhere
  EXPECT_EQ(error_beside({{trio, [](int rank) { return rank == 1 || rank == 2; }}}),
            begin + "rank 3, rank 4, which have not come");
  // 1 waits for 3 and 4 for 2, in groups of two colours; 2 waits for 3 in a group of another split
  const Colour thirds = [](int rank) { return rank == 0 ? 5 : rank % 2 == 1 ? 7 : -3; };
  const Colour middle = [](int rank) { return int{rank == 2 || rank == 3}; };
  EXPECT_EQ(error_beside({{thirds, [](int rank) { return rank == 1 || rank == 4; }},
                          {middle, [](int rank) { return rank == 2; }}}),
            begin + "rank 3, which has not come");
  // a group that has met keeps nobody waiting
  EXPECT_EQ(error_beside({{trio, [](int rank) { return rank > 0 && rank < 4; }}}),
            begin + "rank 1, rank 2, rank 3, rank 4, which have not come");
}

TEST(CommunicatorGroups, MayBeMadeOverAndOver) {
  run_well(group_workers(), [&](Communicator& comm) {
    const int before = comm.split(0)->roster().generation;
    int wrong = 0;
    for (int i = 1; i <= 300; ++i) {
      const std::unique_ptr<Communicator> group = comm.split(comm.rank() < i % comm.size());
      wrong += group->roster().generation != before + i;
      wrong += sum(*group, 1u) != static_cast<uint32_t>(group->size());
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(sum(comm, 1u), static_cast<uint32_t>(comm.size()));
  });
}

}  // namespace
}  // namespace wisp
