// The devices that a test can use here.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/cuda/device.h"

namespace wisp {

/// The first device that is not the CPU: an emulated one, or in a build with CUDA a real one.
inline Device first_device() { return {Device::Kind::cuda, 0}; }

/// Asks for as many devices: emulated ones, from now on. A machine has those that it has.
void want_devices(int count);

/// Why first_device() cannot be used: a build with CUDA on a machine without a GPU. Else empty.
inline std::string device_obstacle() { return cuda::obstacle(first_device()); }

/// Tests that need first_device(); skipped where there is none.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = device_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

}  // namespace wisp
