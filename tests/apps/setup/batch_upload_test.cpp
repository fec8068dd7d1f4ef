#include "apps/setup/batch_upload.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/copy.h"
#include "tests/support/devices.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class Upload : public DeviceTest {};

Batch batch_of(int number, int64_t numel) {
  const std::vector<float> input(static_cast<size_t>(numel), static_cast<float>(number));
  return {.inputs = {tensor_of<float>(input)},
          .targets = tensor_of<int32_t>({number}),
          .samples = tensor_of<int64_t>({number, number + 1}),
          .index = number};
}

/// More batches are in flight than there are pinned blocks. Their sizes grow and shrink, and the
/// loader reuses their memory at once.
TEST_F(Upload, BringsEachBatchWhole) {
  TestContext rig({.device = first_device()});
  BatchUpload upload(rig.context);
  const int64_t sizes[] = {10, 1000, 3, 5000, 5000, 20};
  std::vector<Batch> there;
  for (int i = 0; i < 6; ++i) {
    const Batch batch = batch_of(i, sizes[i]);
    there.push_back(upload(batch));
    batch.inputs[0].clear();
    batch.targets.clear();
    batch.samples.clear();
  }
  for (int i = 0; i < 6; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(there[at].index, i);
    const Tensor input = fetch(rig.stream, there[at].inputs[0]);
    ASSERT_EQ(input.numel(), sizes[i]);
    EXPECT_EQ(input.data<float>()[sizes[i] - 1], static_cast<float>(i));
    EXPECT_EQ(*fetch(rig.stream, there[at].targets).data<int32_t>(), i);
    EXPECT_EQ(fetch(rig.stream, there[at].samples).data<int64_t>()[1], i + 1);
  }
}

TEST_F(Upload, CopiesABatchThatWasStartedNoMore) {
  TestContext rig({.device = first_device()});
  BatchUpload upload(rig.context);
  const Batch batch = batch_of(3, 10);
  upload.start(batch);
  batch.inputs[0].clear();
  const Batch there = upload(batch);
  EXPECT_EQ(fetch(rig.stream, there.inputs[0]).data<float>()[9], 3.0f);
  const Batch again = upload(batch);
  EXPECT_EQ(fetch(rig.stream, again.inputs[0]).data<float>()[9], 0.0f);
}

TEST_F(Upload, BringsAnotherBatchThanWasStarted) {
  TestContext rig({.device = first_device()});
  BatchUpload upload(rig.context);
  const Batch started = batch_of(1, 10);
  for (const auto& change : std::vector<std::function<void(Batch&)>>{
           [](Batch& batch) { batch.index = 2; }, [](Batch& batch) { batch.epoch = 2; },
           [](Batch& batch) {
             batch.samples = tensor_of<int64_t>({1, 2});
           }}) {
    upload.start(started);
    Batch other = started;
    other.inputs = {tensor_of<float>({8.0f, 9.0f})};
    change(other);
    const Batch there = upload(other);
    EXPECT_EQ(there.index, other.index);
    EXPECT_EQ(fetch(rig.stream, there.inputs[0]).data<float>()[1], 9.0f);
  }
}

TEST_F(Upload, LeavesABatchOnTheCpuWhereItIs) {
  TestContext rig;
  const Batch batch = batch_of(1, 4);
  const Batch there = BatchUpload(rig.context)(batch);
  EXPECT_EQ(there.inputs[0].raw(), batch.inputs[0].raw());
}

}  // namespace
}  // namespace wisp
