// The devices available to a test. One thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/cuda/device.h"

namespace wisp {

/// The first device that is not the CPU: emulated, or a real one in a build with CUDA.
inline Device first_device() { return {Device::Kind::cuda, 0}; }

/// Sets the number of emulated devices. In a build with CUDA the machine determines the number.
void want_devices(int count);

/// The reason why first_device() is unavailable: a build with CUDA on a machine without a GPU. Else
/// empty.
inline std::string device_obstacle() { return cuda::obstacle(first_device()); }

/// A fixture for tests that need first_device(). It skips them if there is none.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = device_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

}  // namespace wisp
