// Tests of collectives on a device's memory: staged through the host's memory, directly on the
// device's streams, and by NCCL between devices.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "core/copy.h"
#include "core/device/device_work.h"
#include "distributed/communicator/nccl_communicator.h"
#include "distributed/communicator/staged_communicator.h"
#include "distributed/launch.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

constexpr int kWorkers = 3, kMostWorkers = 5;

enum class Way { staged, direct, nccl };

Device device_of(int rank, Way way) { return {Device::Kind::cuda, way == Way::nccl ? rank : 0}; }

/// A worker's device, communicator and tensors.
struct Site {
  Site(Worker& worker, Way way)
      : rank(worker.rank),
        rig({.device = device_of(worker.rank, way)}),
        communicator(worker.communicator) {
    if (way == Way::staged) {
      own = std::make_unique<StagedCommunicator>(worker.communicator, rig.stream, rig.pool);
    } else if (way == Way::nccl) {
      own = join_nccl(worker.communicator, rig.stream, rig.pool, 60.0);
      WISP_CHECK(own, "built without NCCL");
    } else {
      EXPECT_TRUE(communicator.move_devices(rig.stream, rig.pool));
    }
  }

  Communicator& comm() { return own ? *own : communicator; }
  Tensor of(const std::vector<float>& values) {
    const Tensor host({static_cast<int64_t>(values.size())}, DType::f32);
    std::copy(values.begin(), values.end(), host.data<float>());
    const Tensor there = rig.context.empty(host.shape(), host.dtype());
    copy_now(rig.stream, host, there);
    return there;
  }
  std::vector<float> read(const Tensor& x) {
    const Tensor host = fetch(rig.stream, x);
    return {host.data<float>(), host.data<float>() + host.numel()};
  }

  int rank;
  TestContext rig;
  Communicator& communicator;
  std::unique_ptr<Communicator> own;
};

Bytes bytes(const Tensor& x) { return {x.raw(), x.bytes()}; }
ConstBytes sent(const Tensor& x) { return {x.raw(), x.bytes()}; }

void among(Way way, const std::function<void(Site&)>& work, int workers = kWorkers) {
  run_workers(workers, {.threads = 1}, [&](Worker& worker) {
    Site site(worker, way);
    work(site);
  });
}

class DeviceCollectives : public DeviceTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (GetParam() != Way::nccl || IsSkipped()) return;
    want_devices(kMostWorkers);
    const std::string obstacle = cuda::obstacle(device_of(kMostWorkers - 1, Way::nccl));
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
  static void among(const std::function<void(Site&)>& work) { wisp::among(GetParam(), work); }
};

std::string way_name(const testing::TestParamInfo<Way>& tested) {
  const char* names[] = {"staged", "direct", "nccl"};
  return names[static_cast<size_t>(tested.param)];
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCollectives,
                         testing::Values(Way::staged, Way::direct, Way::nccl), way_name);

/// NCCL adds in its own order; its stand-in adds in Wisp's.
bool sums_may_differ(DType dtype) {
  const bool rounds =
      dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  return rounds && std::string(device_kind()) != "emulated";
}

/// Slices of many lengths, whose ends lie on no border of shares, reduce to the host's bits.
TEST_P(DeviceCollectives, ReduceToTheBitsOfTheHost) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::u32}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      if (GetParam() == Way::nccl && op == ReduceOp::sum && sums_may_differ(dtype)) continue;
      for (const int workers : {1, 2, kMostWorkers}) {
        const int64_t element = size_of(dtype);
        const std::vector<Memory> inputs = inputs_of(workers, dtype, 3000);
        std::vector<int64_t> sizes;
        for (int64_t i = 0; i < 200; ++i) sizes.push_back(i % 23);
        wisp::among(
            GetParam(),
            [&](Site& site) {
              Memory expected = inputs[static_cast<size_t>(site.rank)];
              const auto numel = static_cast<int64_t>(expected.size()) / element;
              const Tensor host({numel}, dtype);
              std::memcpy(host.raw(), expected.data(), expected.size());
              const Tensor there = site.rig.context.empty(host.shape(), dtype);
              copy_now(site.rig.stream, host, there);

              site.communicator.all_reduce(cut(expected, element, sizes), dtype, op)->wait();
              std::vector<Bytes> slices;
              int64_t at = 0;
              for (const Bytes& slice : cut(expected, element, sizes)) {
                slices.push_back({there.raw() + at, slice.bytes});
                at += slice.bytes;
              }
              site.comm().all_reduce(slices, dtype, op)->wait();
              const Tensor result = fetch(site.rig.stream, there);
              EXPECT_EQ(std::memcmp(result.raw(), expected.data(), expected.size()), 0)
                  << name_of(dtype) << " on " << workers << " workers";
            },
            workers);
      }
    }
  }
}

TEST_F(DeviceTest, StagedGroupsAreNotMadeDuringACollective) {
  among(Way::staged, [](Site& site) {
    const Tensor x = site.of({1});
    const Bytes slice = bytes(x);
    const PendingPtr pending = site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
    EXPECT_EQ(error_of([&] { site.comm().split(0); }),
              "split: a collective is still under way, wait() for it first");
    pending->wait();
    const int64_t before = site.comm().bytes_sent();
    EXPECT_EQ(site.comm().split(0)->size(), kWorkers);
    EXPECT_GT(site.comm().bytes_sent(), before) << "colours are exchanged";
  });
}

TEST_F(DeviceTest, StagedCollectivesTakeSlicesOfTheHostToo) {
  among(Way::staged, [](Site& site) {
    const auto r = static_cast<float>(site.rank);
    const Tensor device = site.of({r, 10 * r, 1}), nothing = site.of({});
    Tensor host({2}, DType::f32);
    host.data<float>()[1] = r;
    const Bytes slices[] = {bytes(device), bytes(nothing), bytes(host)};
    site.comm().all_reduce(slices, DType::f32, ReduceOp::sum)->wait();
    EXPECT_EQ(site.read(device), (std::vector<float>{3, 30, 3}));
    EXPECT_EQ(host.data<float>()[1], 3.0f);
  });
}

TEST_F(DeviceTest, StagedCollectivesAreOneAtATime) {
  among(Way::staged, [](Site& site) {
    const Tensor x = site.of({1.0f});
    const Bytes slice = bytes(x);
    const PendingPtr first = site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
    const std::string refused = error_of([&] { site.comm().barrier(); });
    EXPECT_NE(refused.find("before the one before it had ended"), std::string::npos) << refused;
    first->wait();
    EXPECT_EQ(site.read(x)[0], 3.0f);
  });
}

TEST_F(DeviceTest, DirectCollectivesRefuseBothMemoriesInOneCall) {
  among(Way::direct, [](Site& site) {
    const Tensor device = site.of({1.0f}), host({1}, DType::f32);
    const Bytes slices[] = {bytes(device), bytes(host)};
    const std::string refused =
        error_of([&] { site.comm().all_reduce(slices, DType::f32, ReduceOp::sum); });
    EXPECT_EQ(refused,
              "all_reduce of 8 bytes (f32, sum): 1 slices in device memory and 1 in host memory, "
              "expected all in one of them");
  });
}

/// If the ranks' memory is of different kinds, all ranks get an error and none hangs.
TEST_F(DeviceTest, DirectCollectivesRefuseRanksOfTheHost) {
  const std::string failure = error_of([] {
    among(Way::direct, [](Site& site) {
      const Tensor device = site.of({1.0f}), host({1}, DType::f32);
      const Bytes slice = bytes(site.rank == 2 ? host : device);
      site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
    });
  });
  EXPECT_EQ(failure,
            "rank 2: all_reduce of 4 bytes (f32, sum) in host memory, but rank 0 passes device "
            "memory");
}

/// A rank that leaves without waiting ends the others' wait, and they report its cause.
TEST_P(DeviceCollectives, EndWithARankThatGoesAway) {
  const std::string failure = error_of([] {
    among([](Site& site) {
      const Tensor x = site.of({1.0f});
      const Bytes slice = bytes(x);
      const PendingPtr pending = site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
      if (site.rank == 1) throw Error("went away");
      pending->wait();
    });
  });
  EXPECT_EQ(failure, "rank 1: went away");
}

/// Polling alone completes a collective, and no thread blocks on a device.
TEST_P(DeviceCollectives, AreThereForWhoeverPolls) {
  among([](Site& site) {
    const Tensor x = site.of({1.0f});
    const Bytes slice = bytes(x);
    site.comm().barrier()->wait();
    const int64_t before = device_work().waits;
    const PendingPtr pending = site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
    while (!pending->ready()) std::this_thread::yield();
    pending->wait();
    const int64_t waited = device_work().waits - before;
    site.comm().barrier()->wait();
    EXPECT_EQ(waited, 0);
    EXPECT_EQ(site.read(x)[0], 3.0f);
  });
}

/// A rank may pass the same memory as its outlet and as its own inlet.
TEST_P(DeviceCollectives, GatherIntoTheDevice) {
  among([](Site& site) {
    const Tensor own = site.of({static_cast<float>(site.rank)});
    std::vector<Tensor> from;
    std::vector<Bytes> in;
    for (int rank = 0; rank < kWorkers; ++rank) {
      from.push_back(rank == site.rank ? own : site.of({-1}));
      in.push_back(bytes(from.back()));
    }
    const ConstBytes out = sent(own);
    site.comm().all_gather({&out, 1}, in)->wait();
    for (int rank = 0; rank < kWorkers; ++rank)
      EXPECT_EQ(site.read(from[static_cast<size_t>(rank)])[0], static_cast<float>(rank));
  });
}

TEST_P(DeviceCollectives, OfAnySizesFollowEachOther) {
  among([](Site& site) {
    for (const size_t numel : {10u, 5000u, 20u}) {
      const Tensor x = site.of(std::vector<float>(numel, 1.0f));
      const Bytes slice = bytes(x);
      site.comm().all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
      EXPECT_EQ(site.read(x), std::vector<float>(numel, 3.0f));
    }
  });
}

TEST_P(DeviceCollectives, GatherFromOneRankAndExchange) {
  among([](Site& site) {
    const Tensor told = site.of({site.rank == 1 ? 7.0f : 0.0f});
    const ConstBytes out = site.rank == 1 ? sent(told) : ConstBytes{};
    const std::vector<Bytes> in = {{}, bytes(told), {}};
    site.comm().all_gather({&out, 1}, in)->wait();  // only rank 1 has something to say
    EXPECT_EQ(site.read(told)[0], 7.0f);

    std::vector<Tensor> heard;
    std::vector<Exchange> messages;
    const Tensor own = site.of({static_cast<float>(site.rank)});
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == site.rank) continue;
      heard.push_back(site.of({-1}));
      messages.push_back({peer, sent(own), bytes(heard.back())});
    }
    site.comm().exchange(messages)->wait();
    size_t i = 0;
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == site.rank) continue;
      EXPECT_EQ(site.read(heard[i++])[0], static_cast<float>(peer));
    }
    site.comm().barrier()->wait();
  });
}

/// The ranks poll in different orders, and yet put their work on the devices in one order.
TEST_P(DeviceCollectives, OfGroupsGoOnBesideThoseOfAll) {
  among([](Site& site) {
    const std::unique_ptr<Communicator> group = site.comm().split(site.rank % 2);
    std::mt19937 random(static_cast<unsigned>(site.rank));
    for (int i = 0; i < 20; ++i) {
      const auto own = static_cast<float>(1 << site.rank);
      const Tensor of_all = site.of({own}), of_group = site.of({own});
      const Bytes all = bytes(of_all), some = bytes(of_group);
      const PendingPtr pending[] = {site.comm().all_reduce({&all, 1}, DType::f32, ReduceOp::sum),
                                    group->all_reduce({&some, 1}, DType::f32, ReduceOp::sum)};
      for (bool ready[] = {false, false}; !ready[0] || !ready[1];) {
        const size_t which = random() % 2;
        ready[which] = pending[which]->ready();
        std::this_thread::yield();
      }
      for (const PendingPtr& each : pending) each->wait();
      EXPECT_EQ(site.read(of_all)[0], 7.0f);
      EXPECT_EQ(site.read(of_group)[0], site.rank == 1 ? 2.0f : 5.0f);
    }
  });
}

TEST_P(DeviceCollectives, SendToEachItsOwn) {
  among([](Site& site) {
    std::vector<Tensor> out, in;
    std::vector<ConstBytes> sending;
    std::vector<Bytes> receiving;
    for (int peer = 0; peer < kWorkers; ++peer) {
      out.push_back(site.of({static_cast<float>(10 * site.rank + peer)}));
      in.push_back(site.of({-1}));
      sending.push_back(sent(out.back()));
      receiving.push_back(bytes(in.back()));
    }
    site.comm().all_to_all(sending, receiving)->wait();
    for (int peer = 0; peer < kWorkers; ++peer)
      EXPECT_EQ(site.read(in[static_cast<size_t>(peer)])[0],
                static_cast<float>(10 * peer + site.rank));
  });
}

}  // namespace
}  // namespace wisp
