#include "distributed/communicator/staged_communicator.h"

#include <gtest/gtest.h>

#include "core/copy.h"
#include "distributed/launch.h"
#include "tests/support/devices.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class StagedCollectives : public DeviceTest {
 protected:
  static constexpr int kWorkers = 3;

  /// One worker: its device, its communicator, and tensors made of what it thinks of.
  struct Site {
    explicit Site(Worker& worker)
        : rank(worker.rank),
          rig({.device = first_device()}),
          communicator(worker.communicator, rig.stream, rig.pool) {}

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
    StagedCommunicator communicator;
  };

  static Bytes bytes(const Tensor& x) { return {x.raw(), x.bytes()}; }
  static ConstBytes sent(const Tensor& x) { return {x.raw(), x.bytes()}; }

  static void among(const std::function<void(Site&)>& work) {
    run_workers(kWorkers, {.threads = 1}, [&](Worker& worker) {
      Site site(worker);
      work(site);
    });
  }
};

TEST_F(StagedCollectives, AddUpSlicesOfTheDeviceAndTheHost) {
  among([](Site& site) {
    const auto r = static_cast<float>(site.rank);
    const Tensor device = site.of({r, 10 * r, 1}), nothing = site.of({});
    Tensor host({2}, DType::f32);
    host.data<float>()[1] = r;
    const Bytes slices[] = {bytes(device), bytes(nothing), bytes(host)};
    site.communicator.all_reduce(slices, DType::f32, ReduceOp::sum)->wait();
    EXPECT_EQ(site.read(device), (std::vector<float>{3, 30, 3}));
    EXPECT_EQ(host.data<float>()[1], 3.0f);
  });
}

/// What a rank sends to itself stays where it is: one memory on both sides.
TEST_F(StagedCollectives, GatherIntoTheDevice) {
  among([](Site& site) {
    const Tensor own = site.of({static_cast<float>(site.rank)});
    std::vector<Tensor> from;
    std::vector<Bytes> in;
    for (int rank = 0; rank < kWorkers; ++rank) {
      from.push_back(rank == site.rank ? own : site.of({-1}));
      in.push_back(bytes(from.back()));
    }
    const ConstBytes out = sent(own);
    site.communicator.all_gather({&out, 1}, in)->wait();
    for (int rank = 0; rank < kWorkers; ++rank)
      EXPECT_EQ(site.read(from[static_cast<size_t>(rank)])[0], static_cast<float>(rank));
  });
}

TEST_F(StagedCollectives, GrowTheirBlockAndGoOn) {
  among([](Site& site) {
    for (const size_t numel : {10u, 5000u, 20u}) {
      const Tensor x = site.of(std::vector<float>(numel, 1.0f));
      const Bytes slice = bytes(x);
      site.communicator.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
      EXPECT_EQ(site.read(x), std::vector<float>(numel, 3.0f));
    }
  });
}

TEST_F(StagedCollectives, BroadcastAndExchange) {
  among([](Site& site) {
    const Tensor told = site.of({site.rank == 1 ? 7.0f : 0.0f});
    const Bytes slice = bytes(told);
    site.communicator.broadcast({&slice, 1}, 1)->wait();
    EXPECT_EQ(site.read(told)[0], 7.0f);

    std::vector<Tensor> heard;
    std::vector<Exchange> messages;
    const Tensor own = site.of({static_cast<float>(site.rank)});
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == site.rank) continue;
      heard.push_back(site.of({-1}));
      messages.push_back({peer, sent(own), bytes(heard.back())});
    }
    site.communicator.exchange(messages)->wait();
    size_t i = 0;
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == site.rank) continue;
      EXPECT_EQ(site.read(heard[i++])[0], static_cast<float>(peer));
    }
    site.communicator.barrier()->wait();
  });
}

TEST_F(StagedCollectives, SendToEachItsOwn) {
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
    site.communicator.all_to_all(sending, receiving)->wait();
    for (int peer = 0; peer < kWorkers; ++peer)
      EXPECT_EQ(site.read(in[static_cast<size_t>(peer)])[0],
                static_cast<float>(10 * peer + site.rank));
  });
}

}  // namespace
}  // namespace wisp
