// Tests of the stand-in for NCCL alone: it hangs where NCCL hangs, and an abort ends that.
#include <gtest/gtest.h>
#include <nccl.h>

#include <array>
#include <memory>
#include <string>

#include "core/copy.h"
#include "tests/support/devices.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

struct Rank {
  Rank(int rank, int device, const ncclUniqueId& id)
      : rig({.device = {Device::Kind::cuda, device}}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    use(rig.stream.device());
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclInProgress);
    x = rig.context.zeros({4}, DType::f32);
  }
  ncclResult_t state() const {
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    return state;
  }
  void submit(size_t count) {
    ncclGroupStart();
    EXPECT_EQ(ncclAllReduce(x.raw(), x.raw(), count, ncclFloat32, ncclSum, comm,
                            static_cast<cudaStream_t>(rig.stream.native())),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  }
  void launch() {
    EXPECT_EQ(state(), ncclInProgress);
    EXPECT_EQ(state(), ncclSuccess);
    done.record(rig.stream);
  }
  /// Whether the collective is not done after 100 looks.
  bool hangs() const {
    for (int look = 0; look < 100; ++look) {
      if (done.reached()) return false;
    }
    return true;
  }

  TestContext rig;
  ncclComm_t comm = nullptr;
  Tensor x;
  Event done;
};

ncclUniqueId fresh_id() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

TEST(EmulatedNccl, WaitsForAllRanks) {
  const ncclUniqueId id = fresh_id();
  Rank a(0, 0, id);
  EXPECT_EQ(a.state(), ncclInProgress);
  Rank b(1, 1, id);
  EXPECT_EQ(a.state(), ncclSuccess);
  for (Rank* rank : {&a, &b}) ncclCommDestroy(rank->comm);
}

TEST(EmulatedNccl, RefusesTwoRanksOnOneDevice) {
  const ncclUniqueId id = fresh_id();
  Rank a(0, 1, id), b(1, 1, id);
  EXPECT_EQ(a.state(), ncclInvalidUsage);
  EXPECT_EQ(std::string(ncclGetLastError(a.comm)),
            "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1");
  for (Rank* rank : {&a, &b}) ncclCommAbort(rank->comm);
}

/// An event recorded before the group reaches the stream does not wait for the group.
TEST(EmulatedNccl, BringsAGroupToTheStreamLater) {
  const ncclUniqueId id = fresh_id();
  Rank a(0, 0, id), b(1, 1, id);
  Event early;
  a.submit(4);
  early.record(a.rig.stream);
  a.launch();
  early.synchronize();
  EXPECT_TRUE(a.hangs());
  b.submit(4);
  b.launch();
  EXPECT_FALSE(a.hangs());
  for (Rank* rank : {&a, &b}) {
    rank->rig.stream.synchronize();
    ncclCommDestroy(rank->comm);
  }
}

TEST(EmulatedNccl, HangsWithOtherCountsUntilEachAborts) {
  const ncclUniqueId id = fresh_id();
  Rank a(0, 0, id), b(1, 1, id);
  a.submit(4);
  b.submit(3);
  a.launch();
  b.launch();
  EXPECT_TRUE(a.hangs());
  EXPECT_TRUE(b.hangs());
  ncclCommAbort(a.comm);
  EXPECT_FALSE(a.hangs());
  EXPECT_TRUE(b.hangs());
  ncclCommAbort(b.comm);
  EXPECT_FALSE(b.hangs());
}

}  // namespace
}  // namespace wisp
