#include "data/images/resident_images.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/copy.h"
#include "core/device/device_work.h"
#include "data/loader.h"
#include "tests/support/devices.h"
#include "tests/support/random_images.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

constexpr int64_t kMost = 1 << 25;

class DeviceImages : public DeviceTest {};

ImageExamples images(Shape shape, DType compute, bool augment) {
  return {random_images(shape), random_normalization(shape[3]), compute, augment};
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.raw(), tensor.raw() + tensor.bytes()};
}

/// Expects the batches of two epochs to have the bits of the loader's.
void expect_loaders_bits(const ImageExamples& host, DType compute, const Deal& deal) {
  TestContext rig({.compute = compute, .device = first_device()});
  const std::unique_ptr<Examples> there = host.on_device(rig.pool, rig.stream, kMost);
  ASSERT_TRUE(there);
  Loader loader(host, deal);
  Loader of_samples(*there, deal);
  for (const int64_t epoch : {0, 3}) {
    loader.start_epoch(epoch);
    of_samples.start_epoch(epoch);
    while (const std::optional<Batch> wanted = loader.next()) {
      std::optional<Batch> batch = of_samples.next();
      ASSERT_TRUE(batch);
      EXPECT_TRUE(batch->inputs.empty());
      ASSERT_TRUE(batch->maker);
      EXPECT_EQ(bytes_of(batch->samples), bytes_of(wanted->samples));
      EXPECT_EQ(std::tuple(batch->count, batch->of_worker, batch->of_step, batch->work),
                std::tuple(wanted->count, wanted->of_worker, wanted->of_step, wanted->work));
      Tensor samples = rig.context.empty(batch->samples.shape(), DType::i64);
      copy_now(rig.stream, batch->samples, samples);
      batch->samples = samples;
      batch->maker->make(rig.context, *batch);
      ASSERT_EQ(batch->inputs.size(), 1u);
      EXPECT_EQ(batch->inputs[0].shape(), wanted->inputs[0].shape());
      EXPECT_EQ(batch->inputs[0].dtype(), compute);
      EXPECT_EQ(bytes_of(fetch(rig.stream, batch->inputs[0])), bytes_of(wanted->inputs[0]));
      EXPECT_EQ(bytes_of(fetch(rig.stream, batch->targets)), bytes_of(wanted->targets));
    }
    EXPECT_FALSE(of_samples.next());
  }
}

TEST_F(DeviceImages, AreTheLoadersBitByBit) {
  for (const DType compute : {DType::f32, DType::bf16, DType::f64}) {
    for (const bool augment : {true, false}) {
      SCOPED_TRACE(concat(name_of(compute), augment ? ", augmented" : ""));
      const ImageExamples host = images({22, 5, 9, 3}, compute, augment);
      for (int rank = 0; rank < 2; ++rank)
        expect_loaders_bits(host, compute,
                            {.batch = 8, .workers = 2, .rank = rank, .accumulate = 2, .seed = 7});
    }
  }
}

TEST_F(DeviceImages, ThatEndInAShortPieceAreEvaluated) {
  const ImageExamples host = images({23, 6, 4, 1}, DType::f32, false);
  for (int rank = 0; rank < 3; ++rank)
    expect_loaders_bits(host, DType::f32,
                        {.batch = 9, .workers = 3, .rank = rank, .training = false});
}

TEST_F(DeviceImages, OfMoreThanOneTransferAreWhole) {
  // one chunk of the transfer holds 21,845 of these images
  expect_loaders_bits(
      ImageExamples(random_images({22000, 16, 16, 3}), random_normalization(), DType::f32, true),
      DType::f32, {.batch = 5500});
}

TEST_F(DeviceImages, AskForOneLaunchABatch) {
  TestContext rig({.compute = DType::f32, .device = first_device()});
  const ImageExamples host = images({8, 4, 4, 3}, DType::f32, true);
  const std::unique_ptr<Examples> there = host.on_device(rig.pool, rig.stream, kMost);
  Loader loader(*there, {.batch = 8});
  loader.start_epoch(0);
  Batch batch = *loader.next();
  Tensor samples = rig.context.empty(batch.samples.shape(), DType::i64);
  copy_now(rig.stream, batch.samples, samples);
  batch.samples = samples;
  const DeviceWork before = device_work();
  batch.maker->make(rig.context, batch);
  rig.stream.synchronize();
  const DeviceWork work = device_work() - before;
  EXPECT_EQ(work.kernels, 1);
  EXPECT_EQ(work.copies, 0);
}

TEST_F(DeviceImages, OfMoreBytesThanAllowedStayWithTheHost) {
  TestContext rig({.device = first_device()});
  const ImageExamples host = images({10, 4, 4, 3}, DType::f32, true);
  EXPECT_FALSE(host.on_device(rig.pool, rig.stream, 10 * 4 * 4 * 3 - 1));
  EXPECT_EQ(rig.pool.stats().used_bytes, 0);
  EXPECT_TRUE(host.on_device(rig.pool, rig.stream, 10 * 4 * 4 * 3));
}

}  // namespace
}  // namespace wisp
