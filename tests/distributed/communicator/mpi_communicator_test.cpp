// Tests of what all collectives between processes have in common. They run under mpirun, together
// with the tests of all communicators. Tests of failures are in apps/train/processes_test.cpp.
#include "distributed/communicator/mpi_communicator.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "distributed/communicator/mpi_messages.h"
#include "distributed/communicator/mpi_session.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace {

int longest_sent = 0;  // bytes, of all messages that this process sends

}  // namespace

/// Replaces MPI's function in this program, and calls it.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  longest_sent = std::max(longest_sent, count);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

namespace wisp {
namespace {

TEST(Mpi, TheWorldIsTheLaunchers) {
  ASSERT_TRUE(world().processes());
  EXPECT_EQ(std::to_string(world().size), environment("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(std::to_string(world().rank), environment("OMPI_COMM_WORLD_RANK"));
}

TEST(Mpi, EachProcessRunsItsOwnWorker) {
  int runs = 0;
  run_workers(world().size, {.threads = 3}, [&](Worker& worker) {
    ++runs;
    EXPECT_EQ(worker.rank, world().rank);
    EXPECT_EQ(worker.threads, 3);
    EXPECT_EQ(worker.communicator.rank(), world().rank);
    EXPECT_EQ(worker.communicator.size(), world().size);
  });
  EXPECT_EQ(runs, 1);
}

TEST(Mpi, RefusesWhatOnlyThreadsCanDo) {
  const auto nothing = [](Worker&) {};
  EXPECT_NE(error_of([&] { run_workers(world().size, {.turns = true}, nothing); }), "no error");
  EXPECT_NE(error_of([&] {
              run_workers(world().size, {.link = {1.0, 0.0}}, nothing);
            }),
            "no error");
  EXPECT_EQ(
      error_of([&] { run_workers(world().size + 1, {}, nothing); }),
      concat(world().size + 1, " workers among ", world().size, " processes, expected one each"));
}

TEST(Mpi, SaysWhenToLookAgainUntilItIsReady) {
  run_well(world().size, [](Communicator& comm) {
    const PendingPtr pending = comm.barrier();
    while (!pending->ready()) EXPECT_TRUE(std::isfinite(pending->ready_at_us()));
    EXPECT_LE(pending->ready_at_us(), now_us());
    const Transfer transfer = pending->wait();
    EXPECT_LE(transfer.begin_us, transfer.end_us);
    EXPECT_EQ(transfer.sent + transfer.received, 0);
    EXPECT_THROW(pending->wait(), Error);
  });
}

TEST(Mpi, RefusesASecondCollectiveBeforeTheFirstIsOver) {
  run_well(world().size, [](Communicator& comm) {
    const PendingPtr pending = comm.barrier();
    EXPECT_EQ(error_of([&] { comm.barrier(); }),
              "barrier: the collective before it is still under way, wait() for it first");
    pending->wait();
    comm.barrier()->wait();
  });
}

TEST(Mpi, ARefusedCallLeavesTheOthersAlone) {
  run_well(world().size, [](Communicator& comm) {
    Memory memory(16);
    const Bytes odd{memory.data(), 6};
    EXPECT_THROW(comm.all_reduce({&odd, 1}, DType::f32, ReduceOp::sum), Error);
    const Exchange nobody{comm.size(), {}, {}};
    EXPECT_THROW(comm.exchange({&nobody, 1}), Error);
    comm.barrier()->wait();
  });
}

TEST(Mpi, TagsOfGroupsRepeatButNotThoseOfTheRun) {
  std::set<int> tags;
  for (int generation = 0; generation < 4094; ++generation)
    for (int64_t round = 80; round < 88; ++round) tags.insert(message_tag(generation, round));
  EXPECT_EQ(tags.size(), 4094u * 8u);
  EXPECT_LE(*tags.rbegin(), 32767);  // the least limit of MPI
  for (int generation = 4094; generation < 20000; ++generation)
    EXPECT_EQ(message_tag(generation, 3), message_tag(generation - 4093, 3));
}

/// Gathers `bytes` of each rank; returns how many of all arrive wrong.
int64_t wrong_bytes(Communicator& comm, int64_t bytes) {
  const auto value = [](int64_t rank, int64_t i) { return static_cast<std::byte>(i % 251 + rank); };
  Memory own(static_cast<size_t>(bytes)), all(own.size() * static_cast<size_t>(comm.size()));
  for (int64_t i = 0; i < bytes; ++i) own[static_cast<size_t>(i)] = value(comm.rank(), i);
  const ConstBytes out{own.data(), bytes};
  std::vector<Bytes> in;
  for (int rank = 0; rank < comm.size(); ++rank) in.push_back({&all[0] + rank * bytes, bytes});
  comm.all_gather({&out, 1}, in)->wait();
  int64_t wrong = 0;
  for (int rank = 0; rank < comm.size(); ++rank)
    for (int64_t i = 0; i < bytes; ++i)
      wrong += in[static_cast<size_t>(rank)].data[i] != value(rank, i);
  return wrong;
}

constexpr int kNearPiece = 4 << 20;  // bytes within a machine

/// With its 40 other bytes a message is just short or long, or just in one piece more.
TEST(Mpi, MessagesOfAnySizeArriveWhole) {
  constexpr int kOthers = 40, kFarPiece = MpiSession::kUnaskedBytes - 1024;
  run_well(world().size, [](Communicator& comm) {
    for (const int64_t border : {131072, kFarPiece, 2 * kFarPiece, kNearPiece, 2 * kNearPiece})
      for (const int64_t bytes : {border - kOthers - 1, border - kOthers, border - kOthers + 1})
        EXPECT_EQ(wrong_bytes(comm, bytes), 0) << bytes << " bytes a rank";
    EXPECT_EQ(wrong_bytes(comm, 6 * kNearPiece), 0);  // more pieces than are under way at once
  });
}

/// Each rank sends each other different pieces, in two rounds.
TEST(Mpi, LongMessagesAreReduced) {
  run_well(world().size, [](Communicator& comm) {
    std::vector<int64_t> sums(1 << 20);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<int64_t>(i) * (comm.rank() + 1);
    const Bytes all{reinterpret_cast<std::byte*>(sums.data()), 8 << 20};
    comm.all_reduce({&all, 1}, DType::i64, ReduceOp::sum)->wait();
    const int64_t ranks = comm.size() * (comm.size() + 1) / 2;
    int64_t wrong = 0;
    for (size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != static_cast<int64_t>(i) * ranks;
    EXPECT_EQ(wrong, 0);
  });
}

/// Open MPI's own limit over TCP.
int unasked_bytes() {
  int provided = 0, index = 0, count = 0;
  size_t bytes = 0;
  MPI_T_cvar_handle handle;
  EXPECT_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_cvar_get_index("btl_tcp_eager_limit", &index), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_cvar_read(handle, &bytes), MPI_SUCCESS);
  MPI_T_cvar_handle_free(&handle);
  MPI_T_finalize();
  return static_cast<int>(bytes);
}

/// A message that MPI sends only when its receiver asks lets the directions of a TCP connection
/// take turns (docs/processes.md). two_hosts_test runs this on two machines, too.
TEST(Mpi, LongMessagesTravelInPiecesThatMpiSendsUnasked) {
  const bool one_machine = world().neighbours == world().size;
  constexpr int kMpiHeader = 100;  // at most
  const int most = one_machine ? kNearPiece : unasked_bytes() - kMpiHeader;
  run_well(world().size, [&](Communicator& comm) {
    longest_sent = 0;
    EXPECT_EQ(wrong_bytes(comm, 2 * kNearPiece), 0);
  });
  EXPECT_GT(longest_sent, 131072);
  EXPECT_LE(longest_sent, most);
}

}  // namespace
}  // namespace wisp
