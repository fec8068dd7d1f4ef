// Tests of device facts and messages, on emulated devices, of which there may also be none.
#include "core/cuda/device.h"

#include <gtest/gtest.h>

#include "core/cuda/check.h"
#include "core/emulated/runtime.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(CudaDevices, TellWhatTheyAre) {
  const std::vector<cuda::DeviceFacts> devices = cuda::list_devices();
  ASSERT_EQ(devices.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const cuda::DeviceFacts& facts = devices[static_cast<size_t>(i)];
    EXPECT_EQ(facts.device, (Device{Device::Kind::cuda, i}));
    EXPECT_EQ(facts.name, "the CPU as if it were a device with memory of its own, for tests");
    EXPECT_EQ(facts.capability, "9.0");
    EXPECT_EQ(facts.driver, "13.0");
    EXPECT_EQ(facts.runtime, "13.0");
    EXPECT_EQ(facts.failure, "");
    EXPECT_GT(facts.free_bytes, 0);
    EXPECT_LE(facts.free_bytes, facts.total_bytes);
  }
  use(first_device());
}

TEST(CudaDevices, TellALackOfMemoryFromOtherFailures) {
  EXPECT_THROW(cuda::check(cudaErrorMemoryAllocation, "cudaMalloc"), OutOfMemory);
  try {
    cuda::check(cudaErrorInvalidValue, "cudaMemcpy");
    FAIL() << "no exception";
  } catch (const OutOfMemory&) {
    FAIL() << "not of memory";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("cudaMemcpy: "), 0u) << error.what();
  }
}

TEST(CudaDevices, SayWhyThereIsNone) {
  EXPECT_EQ(cuda::obstacle(first_device()), "");
  EXPECT_EQ(cuda::obstacle({Device::Kind::cuda, 2}), "there are 2 devices, counted from 0");
  emulated::set_devices(0);
  const std::string found = cuda::obstacle(first_device());
  EXPECT_EQ(found,
            "there is no device (cudaErrorNoDevice); is there a GPU (nvidia-smi lists them), and "
            "does CUDA_VISIBLE_DEVICES leave it out?");
  EXPECT_EQ(error_of([] { cuda::check_device(first_device()); }), "emulated:0: " + found);
  EXPECT_TRUE(cuda::list_devices().empty());
  emulated::set_devices(2);
}

}  // namespace
}  // namespace wisp
