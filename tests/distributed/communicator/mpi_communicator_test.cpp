// Tests of what all collectives between processes have in common. They run under mpirun, together
// with the tests of all communicators. Tests of failures are in apps/train/processes_test.cpp.
#include "distributed/communicator/mpi_communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace wisp {
namespace {

TEST(Mpi, TheWorldIsTheLaunchers) {
  ASSERT_TRUE(world().processes());
  EXPECT_EQ(std::to_string(world().size), environment("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(std::to_string(world().rank), environment("OMPI_COMM_WORLD_RANK"));
}

/// By default, Open MPI sends the two directions of a TCP exchange in turn (docs/processes.md).
TEST(Mpi, OpenMpiIsToldToSendBothDirectionsAtOnce) {
  EXPECT_EQ(environment("OMPI_MCA_btl_tcp_flags"), "send,inplace");
  EXPECT_EQ(environment("OMPI_MCA_btl_tcp_eager_limit"), "262144");
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
    EXPECT_THROW(comm.broadcast({&odd, 1}, comm.size()), Error);
    comm.barrier()->wait();
  });
}

TEST(Mpi, LargeMessagesArriveWhole) {
  run_well(world().size, [](Communicator& comm) {
    std::vector<uint32_t> own(1 << 20), all(own.size() * static_cast<size_t>(comm.size()));
    std::iota(own.begin(), own.end(), static_cast<uint32_t>(comm.rank()));
    const ConstBytes out{reinterpret_cast<const std::byte*>(own.data()), 4 << 20};
    std::vector<Bytes> in;
    for (int rank = 0; rank < comm.size(); ++rank) {
      uint32_t* begin = all.data() + own.size() * static_cast<size_t>(rank);
      in.push_back({reinterpret_cast<std::byte*>(begin), 4 << 20});
    }
    comm.all_gather({&out, 1}, in)->wait();
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) wrong += all[i] != i % own.size() + i / own.size();
    EXPECT_EQ(wrong, 0u);
  });
}

}  // namespace
}  // namespace wisp
