// Tests of the choice between threads and processes as workers, and of its errors.
#include "apps/setup/train_options.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr World kAlone, kFour{.rank = 1, .size = 4};

TrainOptions options_in(const World& world, const Overrides& overrides) {
  Config config = tiny_config(overrides);
  return TrainOptions::bind(config, world);
}

std::string refusal(const World& world, const Overrides& overrides) {
  return error_of([&] { options_in(world, overrides); });
}

TEST(Engine, WorkersAreTheProcessesUnlessGiven) {
  EXPECT_EQ(options_in(kFour, {}).workers, 4);
  EXPECT_EQ(options_in(kFour, {"workers=4", "distributed.engine=mpi"}).workers, 4);
  EXPECT_EQ(options_in(kAlone, {}).workers, 1);
  EXPECT_EQ(options_in(kAlone, {"workers=2", "distributed.engine=threads"}).workers, 2);
}

TEST(Engine, WaitsNoLongerThanItsClockCounts) {
  EXPECT_EQ(refusal(kAlone, {"timeout_s=1e10"}),
            "command line: timeout_s is 1e+10, expected 0.001 to 1e9");
  EXPECT_EQ(refusal(kAlone, {"link.latency_us=1e18"}),
            "command line: link.latency_us is 1e+18, expected 0 to 1e9");
  EXPECT_EQ(options_in(kAlone, {"timeout_s=1e9"}).timeout_s, 1e9);
}

/// On a machine with two devices, the number that are emulated by default.
TEST(Engine, ProcessesOfAMachineTakeItsDevicesInTurn) {
  if (std::string(device_kind()) != "emulated") GTEST_SKIP() << "as many devices as there are";
  for (const int place : {0, 1, 2}) {
    const World world{.rank = 4 + place, .size = 8, .local_rank = place, .neighbours = 3};
    const TrainOptions options = options_in(world, {"device=emulated"});
    EXPECT_EQ(options.target().index, place % 2);
    EXPECT_FALSE(options.own_device);
  }
  EXPECT_TRUE(options_in({.size = 2, .neighbours = 2}, {"device=emulated"}).own_device);
  EXPECT_EQ(options_in({.size = 2, .local_rank = 1}, {}).target(), Device{});
}

TEST(Engine, ThreadsShareADeviceOrHaveOneEach) {
  if (std::string(device_kind()) != "emulated") GTEST_SKIP() << "as many devices as there are";
  const Overrides two{"device=emulated", "workers=2"};
  const TrainOptions shared = options_in(kAlone, two);
  EXPECT_EQ(shared.target(shared.place(1)).index, 0);
  EXPECT_FALSE(shared.own_device);
  const TrainOptions each = options_in(kAlone, two + Overrides{"devices=2"});
  EXPECT_EQ(each.target(each.place(1)).index, 1);
  EXPECT_TRUE(each.own_device);
  EXPECT_EQ(options_in(kAlone, {"workers=2", "devices=2"}).devices, 1) << "of the CPU there is one";

  const auto refused = [](const World& world, const Overrides& more) {
    return refusal(world, Overrides{"device=emulated"} + more);
  };
  EXPECT_EQ(refused(kFour, {"devices=4"}),
            "command line: devices is 4, but mpirun (or srun) started 4 processes, each of which "
            "takes one of its machine's; leave devices out");
  EXPECT_EQ(refused(kAlone, {"workers=4", "devices=2"}),
            "command line: devices is 2, expected 1, which all workers share, or 4, one for each "
            "worker");
  EXPECT_EQ(refused(kAlone, {"workers=4", "devices=4"}),
            "command line: devices is 4, but this machine has 2");
  EXPECT_EQ(refused(kAlone, {"workers=2", "devices=2", "link.gbit_per_s=1"}),
            "command line: devices is 2: the emulated link is between workers that share a device");
  EXPECT_EQ(refused(kAlone, {"devices=0"}), "command line: devices is 0, expected 1 or more");
}

TEST(Engine, ProcessesDecideHowManyWorkersThereAre) {
  const TrainOptions asked = options_in(kFour, {"workers=2"});
  EXPECT_EQ(asked.workers, 4);
  EXPECT_EQ(asked.notices,
            std::vector<std::string>{"command line: workers is 2, but mpirun (or srun) started 4 "
                                     "processes, and each is one worker"});
  Config config = Config::from_text("train.batch = 8\nworkers = 8\n", "my.toml");
  const TrainOptions in_file = TrainOptions::bind(config, kFour);
  EXPECT_EQ(in_file.notices,
            std::vector<std::string>{"my.toml:2: workers is 8, but mpirun (or srun) started 4 "
                                     "processes, and each is one worker"});
  EXPECT_NE(config.resolved().find("workers = 4"), std::string::npos) << config.resolved();
  EXPECT_TRUE(options_in(kFour, {"workers=4"}).notices.empty());
  EXPECT_TRUE(options_in(kFour, {}).notices.empty());
}

TEST(Engine, AnotherEngineIsExplained) {
  EXPECT_EQ(refusal(kFour, {"distributed.engine=threads"}),
            "command line: distributed.engine is threads, but mpirun (or srun) started 4 "
            "processes, and each would train by itself; start one process, or let auto choose mpi");
  EXPECT_EQ(refusal(kAlone, {"distributed.engine=mpi", "workers=4"}),
            "command line: distributed.engine is mpi, but this process runs alone; start it with "
            "mpirun -n 4, or let auto choose threads");
  EXPECT_EQ(refusal(kAlone, {"distributed.engine=gloo"}),
            "command line: distributed.engine is 'gloo', expected auto, threads or mpi");
}

TEST(Engine, WhatOnlyThreadsCanDoIsRefused) {
  for (const char* key : {"turns=true", "link.gbit_per_s=1", "link.latency_us=5"}) {
    const std::string error = refusal(kFour, {key});
    EXPECT_NE(error.find("threads only, but mpirun (or srun) started 4 processes"),
              std::string::npos)
        << key << ": " << error;
    EXPECT_EQ(refusal(kAlone, {key}), "no error");
  }
}

}  // namespace
}  // namespace wisp
