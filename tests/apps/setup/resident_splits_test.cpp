#include "apps/setup/resident_splits.h"

#include <gtest/gtest.h>

#include "apps/setup/batch_upload.h"
#include "core/device/device_work.h"
#include "core/emulated/memory.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

int64_t mapped() { return static_cast<int64_t>(emulated::Memory::get().mapped_bytes()); }

Prepared loaded(Config config) {
  Prepared run(std::move(config));
  run.load();
  return run;
}

Batch first_batch(const Prepared& run, Split split, int rank) {
  const std::unique_ptr<Loader> loader = run.loader(split, rank);
  loader->start_epoch(0);
  return *loader->next();
}

TEST(ResidentSplits, AreThereOnceForAllWorkers) {
  const Prepared run = loaded(tiny_config({"workers=4", "device=emulated", "data.validation=32"}));
  const int64_t before = mapped();
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const Batch first = first_batch(run, split, 0);
    const int64_t one = mapped();
    EXPECT_TRUE(first.maker) << name_of(split);
    EXPECT_TRUE(first.inputs.empty());
    for (int rank = 1; rank < 4; ++rank)
      EXPECT_EQ(first_batch(run, split, rank).maker, first.maker);
    EXPECT_EQ(mapped(), one);
  }
  EXPECT_GE(mapped() - before, (96 + 32 + 40) * 32 * 32 * 3);
}

/// A batch copies its samples' numbers, from which a kernel makes the rest.
TEST(ResidentSplits, SendOneCopyABatch) {
  const Prepared run = loaded(tiny_config({"device=emulated"}));
  TestContext rig({.compute = DType::f32, .device = run.options().target()});
  BatchUpload upload(rig.context);
  const Batch batch = first_batch(run, Split::train, 0);
  const DeviceWork before = device_work();
  const Batch there = upload(batch);
  rig.stream.synchronize();
  const DeviceWork work = device_work() - before;
  EXPECT_EQ(work.copies, 1);
  EXPECT_EQ(work.kernels, 1);
  EXPECT_EQ(there.inputs.at(0).shape(), Shape({32, 32, 32, 3}));
  EXPECT_TRUE(there.inputs[0].device().is_cuda());
}

TEST(ResidentSplits, AreNothingForAReplicaOnTheCpu) {
  const Prepared run = loaded(tiny_config({"device=emulated"}));
  TestContext rig;
  const std::string error =
      error_of([&] { BatchUpload(rig.context)(first_batch(run, Split::train, 0)); });
  EXPECT_NE(error.find("this replica is on the CPU"), std::string::npos) << error;
}

TEST(ResidentSplits, AreNotAskedForBeforeSomebodyLoads) {
  const int64_t before = mapped();
  const Prepared run = loaded(tiny_config({"device=emulated"}));
  EXPECT_EQ(mapped(), before);
}

TEST(ResidentSplits, OfTheCpuAreTheHosts) {
  const Prepared run = loaded(tiny_config());
  const Batch batch = first_batch(run, Split::train, 0);
  EXPECT_FALSE(batch.maker);
  EXPECT_EQ(batch.inputs.size(), 1u);
}

TEST(ResidentSplits, OfWordsAreTheHosts) {
  const TempDir dir;
  const Prepared run =
      loaded(tiny_text_config(dir.write("text.txt", tiny_lines(60)), {"device=emulated"}));
  const Batch batch = first_batch(run, Split::train, 0);
  EXPECT_FALSE(batch.maker);
  EXPECT_EQ(batch.inputs.size(), 1u);
}

TEST(ResidentSplits, ThatTheDeviceHasNoMemoryForAreNamed) {
  const Prepared run = loaded(tiny_config({"device=emulated"}));
  auto& memory = emulated::Memory::get();
  const size_t limit = memory.limit();
  memory.set_limit(memory.mapped_bytes() + (size_t{2} << 20));  // room for a stream
  const std::string error = error_of([&] { run.loader(Split::train, 0); });
  memory.set_limit(limit);
  EXPECT_NE(error.find("synthetic train: 393216 bytes of images to hold: emulated:0: out of"),
            std::string::npos)
      << error;
  EXPECT_TRUE(first_batch(run, Split::train, 0).maker) << "later there was memory";
}

}  // namespace
}  // namespace wisp
