// The devices that a test can use here.
#pragma once

#include <gtest/gtest.h>

#include "core/cuda/device.h"
#include "core/error.h"

namespace wisp {

/// The first device that is not the CPU: an emulated one, or in a build with CUDA a real one.
inline Device first_device() { return {Device::Kind::cuda, 0}; }

/// Asks for as many devices: emulated ones, from now on. A machine has those that it has.
void want_devices(int count);

/// Tests that need first_device(); skipped in a build with CUDA on a machine without a GPU.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      cuda::check_device(first_device());
    } catch (const Error& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
};

}  // namespace wisp
