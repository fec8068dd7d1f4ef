// Tests of a program that links neither CUDA nor wisp::emulated.
#include <gtest/gtest.h>

#include "core/backend.h"
#include "core/copy.h"
#include "core/cuda/device.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

const std::string kNone =
    "this program computes on the CPU only: configure Wisp with -DWISP_CUDA=ON for GPUs, or link "
    "wisp::emulated for emulated devices";

TEST(NoDevices, AreListed) {
  EXPECT_TRUE(cuda::list_devices().empty());
  EXPECT_EQ(cuda::obstacle({Device::Kind::cuda, 0}), kNone);
  EXPECT_EQ(missing_for_cuda(), "CUDA: configure with -DWISP_CUDA=ON (cmake --preset cuda)");
}

TEST(NoDevices, AreRefused) {
  const Device device{Device::Kind::cuda, 0};
  EXPECT_EQ(device.str(), "cuda:0");
  EXPECT_EQ(error_of([&] { use(device); }), kNone);
  EXPECT_EQ(error_of([&] { Stream::on(device); }), kNone);
  EXPECT_EQ(error_of([&] { pinned_block(1, device); }), kNone);
  EXPECT_EQ(error_of([&] { MemoryPool(device).allocate(1, 1); }), kNone);
}

TEST(NoDevices, LeaveTheCpu) {
  use({});
  const Stream stream = Stream::on({});
  Event event;
  event.record(stream);
  event.wait(stream);
  event.synchronize();
  EXPECT_TRUE(event.reached());
  const Tensor from(Shape{2}, DType::f32), to(Shape{2}, DType::f32);
  from.clear();
  copy(stream, from, to);
  EXPECT_EQ(to.data<float>()[1], 0.0f);
}

}  // namespace
}  // namespace wisp
