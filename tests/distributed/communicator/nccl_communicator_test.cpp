// Tests of ranks with one device each, over the stand-in for NCCL. A failure ends all ranks with
// one cause. Tests of the data that ranks move are in device_collectives_test.cpp.
#include "distributed/communicator/nccl_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/copy.h"
#include "core/emulated/nccl.h"
#include "core/emulated/queues.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/random_collective.h"
#include "tests/support/ranks.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

constexpr int kRanks = 4;

struct Site {
  Site(Communicator& of_host, double timeout_s)
      : rank(of_host.rank()), rig({.device = {Device::Kind::cuda, rank}}), host(of_host) {
    comm = join_nccl(host, rig.stream, rig.pool, timeout_s);
  }
  Tensor of(const std::vector<float>& values) {
    const Tensor there = rig.context.empty({std::ssize(values)}, DType::f32);
    const Tensor here({std::ssize(values)}, DType::f32);
    std::copy(values.begin(), values.end(), here.data<float>());
    copy_now(rig.stream, here, there);
    return there;
  }
  float first(const Tensor& x) { return *fetch(rig.stream, x).data<float>(); }
  PendingPtr sum(const Tensor& x) {
    const Bytes slice{x.raw(), x.bytes()};
    return comm->all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
  }

  int rank;
  TestContext rig;
  Communicator& host;
  std::unique_ptr<Communicator> comm;
};

Bytes bytes(const Tensor& x) { return {x.raw(), x.bytes()}; }
ConstBytes sent(const Tensor& x) { return {x.raw(), x.bytes()}; }

class Nccl : public testing::Test {
 protected:
  void SetUp() override { want_devices(kRanks); }
  void TearDown() override {
    emulated::set_nccl_fault(emulated::NcclFault::none);
    emulated::Queues::get().shuffle(0);
  }

  /// The error text of each rank, empty if it had none.
  template <class Work>
  static std::vector<std::string> errors(const Work& work, double timeout_s = 20.0) {
    ThreadGroup group(kRanks, {}, timeout_s);
    return run_ranks(group, [&](Communicator& host) {
      try {
        Site site(host, timeout_s);
        work(site);
      } catch (const std::exception& failure) {
        host.abort(failure.what());
        throw;
      }
    });
  }
};

/// Like wrong_words(), on a device's memory.
int wrong_on_device(const Draw& draw, Site& site, Communicator& comm, std::mt19937& pauses,
                    const std::function<void()>& meanwhile = {}) {
  const Tensor before({draw.words()}, DType::u32);
  for (int64_t i = 0; i < draw.words(); ++i)
    before.data<uint32_t>()[i] = draw.before(comm.rank(), i);
  const Tensor brought = site.rig.context.empty(before.shape(), DType::u32);
  const Tensor got = site.rig.context.empty(before.shape(), DType::u32);
  copy_now(site.rig.stream, before, brought);
  copy_now(site.rig.stream, before, got);
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  for (int64_t r = 0; r < draw.workers; ++r) {
    out.push_back({brought.raw() + 4 * r * draw.n, 4 * draw.n});
    in.push_back({got.raw() + 4 * r * draw.n, 4 * draw.n});
  }
  const PendingPtr pending = begin(draw, comm, out, in);
  if (meanwhile) meanwhile();
  while (pauses() % 2 == 0 && !pending->ready()) std::this_thread::yield();
  pending->wait();
  const Tensor after = fetch(site.rig.stream, got);
  int wrong = 0;
  for (int64_t i = 0; i < draw.words(); ++i)
    wrong += after.data<uint32_t>()[i] != draw.after(comm.rank(), i);
  return wrong;
}

TEST_F(Nccl, SurvivesRandomCollectives) {
  for (const uint64_t seed : {0u, 1u, 2u}) {
    emulated::Queues::get().shuffle(seed);
    const auto failures = errors([&](Site& site) {
      std::mt19937 shared(static_cast<unsigned>(seed) + 1);
      std::mt19937 pauses(static_cast<unsigned>(site.rank) + 2);
      int wrong = 0;
      for (int i = 0; i < 100; ++i) {
        const Draw draw(shared, kRanks);
        wrong += wrong_on_device(draw, site, *site.comm, pauses);
        wrong += wrong_words(draw, *site.comm, pauses);  // on the host's memory
      }
      EXPECT_EQ(wrong, 0);
    });
    EXPECT_EQ(failures, of_all(kRanks, ""));
  }
}

/// A group's collective is under way within one of all ranks.
TEST_F(Nccl, KeepsCollectivesOfGroupsApart) {
  for (const uint64_t seed : {0u, 1u, 2u}) {
    emulated::Queues::get().shuffle(seed);
    const auto failures = errors([&](Site& site) {
      const int colour = seed == 0 ? site.rank / 2 : seed == 1 ? site.rank % 2 : site.rank == 3;
      const std::unique_ptr<Communicator> group = site.comm->split(colour);
      std::mt19937 of_all(1), of_group(2), pauses(static_cast<unsigned>(site.rank) + 3);
      int wrong = 0;
      for (int i = 0; i < 50; ++i) {
        const Draw draw(of_all, kRanks), within(of_group, group->size());
        wrong += wrong_on_device(draw, site, *site.comm, pauses,
                                 [&] { wrong += wrong_on_device(within, site, *group, pauses); });
      }
      EXPECT_EQ(wrong, 0);
    });
    EXPECT_EQ(failures, of_all(kRanks, ""));
  }
}

/// The other ranks' work, of all and of their groups, is on their streams and waits there.
TEST_F(Nccl, EndsAllGroupsWithOneOfThem) {
  emulated::set_nccl_fault(emulated::NcclFault::silent);
  const auto failures = errors([](Site& site) {
    const std::unique_ptr<Communicator> half = site.comm->split(site.rank / 2);
    const Tensor x = site.of({1.0f}), y = site.of({1.0f});
    const Bytes slice = bytes(y);
    const PendingPtr of_all = site.sum(x);
    const PendingPtr of_half = half->all_reduce({&slice, 1}, DType::f32, ReduceOp::sum);
    for (int look = 0; look < 1000; ++look) of_half->ready();
    if (site.rank == 3) half->abort("out of ideas");
    (site.rank % 2 == 0 ? of_half : of_all)->wait();
  });
  EXPECT_EQ(failures[0], "rank 3: out of ideas");
}

TEST_F(Nccl, CountsWhatTheOtherCommunicatorsCount) {
  EXPECT_EQ(
      errors([](Site& site) {
        const Tensor x = site.of(std::vector<float>(1000, 1.0f)), host({1000}, DType::f32);
        const Transfer transfer = site.sum(x)->wait();
        const Bytes slice = bytes(host);
        const Transfer same = site.host.all_reduce({&slice, 1}, DType::f32, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, same.sent);
        EXPECT_EQ(transfer.received, same.received);
        EXPECT_LE(transfer.begin_us, transfer.end_us);
        EXPECT_EQ(site.comm->barrier()->wait().sent, 0);
      }),
      of_all(kRanks, ""));
}

/// Idle ranks cannot know whether the messages lie in the host's or a device's memory.
TEST_F(Nccl, ExchangesWithSomeRanksIdle) {
  EXPECT_EQ(errors([](Site& site) {
              const Tensor own = site.of({static_cast<float>(site.rank)}), got = site.of({-1.0f});
              const Exchange message{1 - site.rank, sent(own), bytes(got)};
              site.comm->exchange({&message, site.rank < 2 ? 1u : 0u})->wait();
              EXPECT_EQ(site.first(got), site.rank < 2 ? 1.0f - site.first(own) : -1.0f);
            }),
            of_all(kRanks, ""));
}

TEST_F(Nccl, SaysWhenToLookAgain) {
  EXPECT_EQ(errors([](Site& site) {
              const Tensor x = site.of({1.0f});
              const PendingPtr pending = site.sum(x);
              while (!pending->ready()) std::this_thread::yield();
              EXPECT_LE(pending->ready_at_us(), now_us());
              EXPECT_NE(error_of([&] { site.sum(x); }).find("still under way"), std::string::npos);
              EXPECT_EQ(error_of([&] { site.comm->split(0); }),
                        "split: a collective is still under way, wait() for it first");
              pending->wait();
              EXPECT_THROW(pending->wait(), Error);
              EXPECT_EQ(site.first(x), 4.0f);
            }),
            of_all(kRanks, ""));
}

TEST_F(Nccl, NamesWhoCallsSomethingElse) {
  EXPECT_EQ(
      errors([](Site& site) {
        const Tensor x = site.of({1.0f});
        if (site.rank == 2) {
          const Exchange message{0, sent(x), {}};
          site.comm->exchange({&message, 1})->wait();
        } else {
          site.sum(x)->wait();
        }
      }),
      of_all(
          kRanks,
          "rank 2: calls exchange of 4 bytes where rank 0 calls all_reduce of 4 bytes (f32, sum)"));
  EXPECT_EQ(errors([](Site& site) {
              const Tensor x = site.of({1.0f});
              (site.rank == 0 ? site.sum(x) : site.comm->barrier())->wait();
            })[0],
            "rank 1: calls barrier where rank 0 calls all_reduce of 4 bytes (f32, sum)");
}

TEST_F(Nccl, NamesWhoExpectsOtherSizes) {
  for (const size_t slices : {1u, 20u}) {
    const auto failures = errors([&](Site& site) {
      const Tensor x = site.of({0.0f, 0.0f});
      std::vector<ConstBytes> out(slices, ConstBytes{x.raw(), 4});
      std::vector<Bytes> in(slices * kRanks, Bytes{x.raw() + 4, 4});
      if (site.rank == 3) in[2 * slices - 1].bytes = 8;  // last slice from rank 1
      if (site.rank == 3) in[2 * slices - 1].data = x.raw();
      site.comm->all_gather(out, in)->wait();
    });
    EXPECT_EQ(failures,
              of_all(kRanks, slices == 1
                                 ? "rank 3: all_gather of 4 bytes expects 8 bytes in slice 0 from "
                                   "rank 1, which sends 4"
                                 : "rank 3: all_gather of 80 bytes expects other sizes from rank "
                                   "1 than it sends, in slice 8 or later"));
  }
}

TEST_F(Nccl, NamesWhoCutsAReductionOtherwise) {
  EXPECT_EQ(errors([](Site& site) {
              const Tensor x = site.of({1.0f, 2.0f, 3.0f});
              const int64_t cut = site.rank == 1 ? 8 : 4;
              const Bytes slices[] = {{x.raw(), cut}, {x.raw() + cut, x.bytes() - cut}};
              site.comm->all_reduce(slices, DType::f32, ReduceOp::sum)->wait();
            }),
            of_all(kRanks,
                   "rank 1: all_reduce of 12 bytes (f32, sum) is cut into other slices than rank "
                   "0's"));
}

TEST_F(Nccl, NamesWhoHandsInTheHostsMemory) {
  EXPECT_EQ(errors([](Site& site) {
              const Tensor device = site.of({1.0f, 2.0f}), host({2}, DType::f32);
              const std::byte* data = (site.rank == 2 ? host : device).raw();
              const Exchange message{site.rank ^ 1, {data, 4}, {}};
              site.comm->exchange({&message, 1})->wait();
            })[3]
                .find("rank 2: exchange of 4 bytes"),
            0u);
}

TEST_F(Nccl, EndsWithARankThatGoesAway) {
  for (const emulated::NcclFault fault : {emulated::NcclFault::none, emulated::NcclFault::silent}) {
    emulated::set_nccl_fault(fault);
    EXPECT_EQ(errors([&](Site& site) {
                const Tensor x = site.of({1.0f});
                const PendingPtr pending = site.sum(x);
                // rank 1 leaves during NCCL's work (silent), or before it begins (none)
                const bool on_wire = fault == emulated::NcclFault::silent;
                for (int look = 0; on_wire && look < 1000; ++look) pending->ready();
                if (site.rank == 1) throw Error("went away");
                pending->wait();
              })[2],
              "rank 1: went away");
  }
}

TEST_F(Nccl, AGivenUpCollectiveIsTheRanksLast) {
  emulated::set_nccl_fault(emulated::NcclFault::silent);
  const auto failures = errors([](Site& site) {
    const Tensor x = site.of({1.0f});
    {
      const PendingPtr given_up = site.sum(x);
      for (int look = 0; look < 1000; ++look) given_up->ready();
    }
    site.sum(x)->wait();
  });
  for (const std::string& failure : failures)
    EXPECT_NE(failure.find("all_reduce of 4 bytes (f32, sum): was given up"), std::string::npos)
        << failure;
}

TEST_F(Nccl, EndsWithAnAsynchronousError) {
  const std::string cause =
      "rank 1: all_reduce of 4 bytes (f32, sum): NCCL: asynchronous error: remote process exited "
      "or there was a network error (the emulated wire was cut)";
  EXPECT_EQ(errors([&](Site& site) {
              const Tensor x = site.of({1.0f});
              site.comm->barrier()->wait();
              emulated::set_nccl_fault(emulated::NcclFault::told, 1);
              EXPECT_EQ(error_of([&] { site.sum(x)->wait(); }), cause);
              EXPECT_EQ(error_of([&] { site.comm->barrier()->wait(); }), cause);
              site.sum(x)->wait();
            }),
            of_all(kRanks, cause));
}

TEST_F(Nccl, EndsWhenTheDevicesTakeTooLong) {
  emulated::set_nccl_fault(emulated::NcclFault::silent);
  for (const std::string& failure : errors(
           [](Site& site) {
             const Tensor x = site.of({1.0f});
             site.sum(x)->wait();
           },
           0.3))
    EXPECT_NE(failure.find("all_reduce of 4 bytes (f32, sum): waited 0.3 s for the devices, after "
                           "all ranks had come"),
              std::string::npos)
        << failure;
}

TEST_F(Nccl, NamesWhoDoesNotCome) {
  std::atomic<int> ended{0};
  for (const std::string& failure : errors(
           [&](Site& site) {
             const Tensor x = site.of({1.0f});
             if (site.rank == 2)
               while (ended < kRanks - 1) std::this_thread::yield();
             const std::string said = error_of([&] { site.sum(x)->wait(); });
             ++ended;
             throw Error(said);
           },
           0.3))
    EXPECT_NE(failure.find("waited 0.3 s for rank 2, which has not come"), std::string::npos)
        << failure;
}

TEST_F(Nccl, NamesWhoDoesNotJoin) {
  ThreadGroup group(kRanks, {}, 0.3);
  const auto failures = run_ranks(group, [&](Communicator& host) {
    if (host.rank() != 1) Site(host, 0.3);
  });
  for (const int rank : {0, 2, 3})
    EXPECT_NE(
        failures[static_cast<size_t>(rank)].find("waited 0.3 s for rank 1, which has not come"),
        std::string::npos)
        << failures[static_cast<size_t>(rank)];
}

TEST_F(Nccl, RefusesTwoRanksOnOneDevice) {
  ThreadGroup group(2, {}, 20.0);
  const auto failures = run_ranks(group, [&](Communicator& host) {
    const TestContext rig({.device = first_device()});
    join_nccl(host, rig.stream, rig.pool, 20.0);
  });
  for (const std::string& failure : failures)
    EXPECT_NE(failure.find("Duplicate GPU detected"), std::string::npos) << failure;
}

}  // namespace
}  // namespace wisp
