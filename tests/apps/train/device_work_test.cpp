// The work that a step asks a device for: launches, waits, fallbacks, and remarks on them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/lab/bench_step.h"
#include "core/device/device_remarks.h"
#include "tests/support/test_replica.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

const Overrides kOnDevice{"device=emulated"};

/// A small ResNet with batch norm.
const Overrides kResNet{"model.name=resnet_cifar", "model.depth=8", "train.batch=12"};

/// The kernels and library calls in a step of one of two workers.
double launches(const Overrides& method) {
  const Config config = tiny_config_of("", kResNet + method + Overrides{"workers=2"} + kOnDevice);
  const StepTiming timing = bench_step(config, "launches", 0.0, 2);
  EXPECT_GT(timing.peak_device_mb, 0.0);
  return static_cast<double>(timing.device.kernels + timing.device.calls) /
         static_cast<double>(timing.steps);
}

/// Each launch costs microseconds on a GPU, so these bounds are the counts in docs/performance.md.
TEST(DeviceWork, OfAStepDoesNotGrow) {
  EXPECT_LE(launches({}), 87.0);
  EXPECT_LE(launches({"compression.method=dgc"}), 197.0);
  EXPECT_LE(launches({"compression.method=topk"}), 197.0);
  EXPECT_LE(launches({"compression.method=acpsgd"}), 151.0);
  EXPECT_LE(launches({"compression.method=qsgd"}), 134.0);
  EXPECT_LE(launches({"compression.method=natural"}), 116.0);
  EXPECT_LE(launches({"compression.method=onebit"}), 189.0);
  EXPECT_LE(launches({"compression.method=ef_signsgd"}), 130.0);
  EXPECT_LE(launches({"compression.method=int8"}), 137.0);
  EXPECT_LE(launches({"compression.method=terngrad"}), 162.0);
}

TEST(DeviceWork, OfAStepIsInTheRowOfTheBenchmark) {
  const Config config = tiny_config_of("", kResNet + kOnDevice);
  StepTiming timing = bench_step(config, "tiny", 0.0, 2);
  const auto before = nlohmann::json::parse(timing.json());
  for (const char* key : {"kernels", "calls", "copies"}) EXPECT_GT(before.at(key), 0.0) << key;
  EXPECT_EQ(before.at("fallbacks"), 0.0);
  timing.device.fallbacks = 3 * timing.steps;
  EXPECT_EQ(nlohmann::json::parse(timing.json()).at("fallbacks"), 3.0);
}

TEST(DeviceRemarks, AreWarningsOfARun) {
  const TempDir dir;
  take_device_remarks();
  remark("a convolution is slow");
  testing::internal::CaptureStderr();
  train(tiny_config({"train.max_steps=3", "train.eval_every=0", "trace.steps=0"}),
        {dir / "run", RunDirectory::Open::create, true});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("wisp: a convolution is slow\n"), std::string::npos) << said;
}

/// The compute thread waits for the comm thread, which polls, so no thread blocks on a device. The
/// device computes the clipping of the mean.
TEST(DeviceWork, OfAStepIsWaitedForByPolling) {
  for (const Overrides& method :
       {Overrides{}, Overrides{"clip.norm=0.5", "clip.where=mean"},
        Overrides{"compression.method=dgc", "compression.ratio=0.05", "compression.warmup=none"},
        Overrides{"compression.method=acpsgd"}, Overrides{"compression.method=qsgd"},
        Overrides{"compression.method=topk", "compression.ratio=0.05", "compression.warmup=none",
                  "compression.probe_every=2"}}) {
    const Config config = tiny_config_of("", kResNet + method + kOnDevice);
    with_replicas(config, [&](ReplicaTest& test) {
      test.steps(0, 2);
      const DeviceWork before = device_work();
      test.steps(2, 3);
      EXPECT_EQ((device_work() - before).waits, 0) << testing::PrintToString(method);
    });
  }
}

/// Each launch handles all fields of a unit. A message takes four launches.
TEST(DeviceWork, OfAUnitDoesNotGrowWithItsFields) {
  const Overrides at_once{"compression.bucket_bytes=100000000",
                          "compression.encode_bytes=100000000", "compression.guard=false"};
  const double dense = launches({at_once.front()});
  const auto expect_at_most = [&](double most, const char* method, const Overrides& options = {}) {
    const Overrides chosen = Overrides{concat("compression.method=", method)} + options;
    const double unit = launches(at_once + chosen) - dense;
    EXPECT_GT(unit, 0.0) << testing::PrintToString(chosen);
    EXPECT_LE(unit, most) << testing::PrintToString(chosen);
  };
  const Overrides kept{"compression.warmup=none"};
  expect_at_most(18, "dgc", kept + Overrides{"compression.indices=runs16"});
  expect_at_most(18, "topk", kept + Overrides{"compression.indices=runs16"});
  expect_at_most(29, "threshold", {"compression.indices=gamma"});
  expect_at_most(21, "gtopk", kept);
  expect_at_most(53, "oktopk", kept + Overrides{"compression.start_after=0"});
  expect_at_most(6, "random_k", kept);
  expect_at_most(6, "random_block", kept);
  expect_at_most(9, "qsgd");
  expect_at_most(11, "qsgd", {"compression.wire=elias"});
  expect_at_most(6, "natural");
  expect_at_most(17, "signsgd");
  expect_at_most(8, "ef_signsgd");
  expect_at_most(9, "int8");
  expect_at_most(9, "int8", {"compression.scaler=own"});
  expect_at_most(13, "terngrad");
  expect_at_most(14, "block_topk", kept);
  expect_at_most(17, "block_topk", kept + Overrides{"compression.sharing=own"});
  expect_at_most(18, "variance", kept);
  expect_at_most(54, "fft");  // three library calls for each field
}

}  // namespace
}  // namespace wisp
