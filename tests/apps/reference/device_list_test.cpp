#include "apps/reference/device_list.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wisp {
namespace {

TEST(DeviceList, OfABuildWithoutCudaHasTheEmulatedDevice) {
  const DeviceList list = list_devices();
  EXPECT_FALSE(list.numerics.empty());
  if (list.kind == "cuda") GTEST_SKIP() << "the rest is of a build without CUDA";
  EXPECT_EQ(device_table(list),
            "cpu         " + list.backend + ": " + list.numerics +
                "\n"
                "emulated:0  the CPU as if it were a device with memory of its own, for tests\n"
                "cuda        no training: this program lacks CUDA: configure with "
                "-DWISP_CUDA=ON (cmake --preset cuda)\n");
  const auto json = nlohmann::json::parse(device_json(list));
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][1]["device"], "emulated:0");
  EXPECT_EQ(json["no_cuda"], list.no_cuda);
}

constexpr int64_t kGiB = int64_t{1} << 30;

/// Two GPUs, one of which is in use by another program.
DeviceList two_gpus() {
  const cuda::DeviceFacts first{.device = {Device::Kind::cuda, 0},
                                .name = "NVIDIA A100",
                                .capability = "8.0",
                                .driver = "13.1",
                                .runtime = "13.0",
                                .free_bytes = 39 * kGiB + kGiB / 2,
                                .total_bytes = 40 * kGiB};
  cuda::DeviceFacts second = first;
  second.device.index = 1;
  second.free_bytes = second.total_bytes = 0;
  second.failure = "device is busy (cudaErrorDevicesUnavailable)";
  return {.backend = "onednn", .numerics = "onednn 3", .kind = "cuda", .devices = {first, second}};
}

TEST(DeviceList, HasALineForEachGpu) {
  EXPECT_EQ(
      device_table(two_gpus()),
      "cpu         onednn: onednn 3\n"
      "cuda:0      NVIDIA A100, compute capability 8.0, 39.5 of 40.0 GiB free, driver for CUDA "
      "13.1, runtime 13.0\n"
      "cuda:1      NVIDIA A100, compute capability 8.0, cannot be used: device is busy "
      "(cudaErrorDevicesUnavailable), driver for CUDA 13.1, runtime 13.0\n");
}

TEST(DeviceList, IsTheSameInJson) {
  const auto json = nlohmann::json::parse(device_json(two_gpus()));
  ASSERT_EQ(json["devices"].size(), 3u);
  EXPECT_EQ(json["devices"][0],
            (nlohmann::json{{"device", "cpu"}, {"backend", "onednn"}, {"numerics", "onednn 3"}}));
  EXPECT_EQ(json["devices"][1], (nlohmann::json{{"device", "cuda:0"},
                                                {"name", "NVIDIA A100"},
                                                {"compute_capability", "8.0"},
                                                {"driver", "13.1"},
                                                {"runtime", "13.0"},
                                                {"free_bytes", 39 * kGiB + kGiB / 2},
                                                {"total_bytes", 40 * kGiB},
                                                {"failure", ""}}));
  EXPECT_EQ(json["devices"][2]["failure"], "device is busy (cudaErrorDevicesUnavailable)");
  EXPECT_EQ(json["no_cuda"], "");
}

TEST(DeviceList, SaysWhyThereIsNoGpu) {
  DeviceList list = two_gpus();
  list.devices.clear();
  list.no_cuda = "no driver";
  EXPECT_EQ(device_table(list),
            "cpu         onednn: onednn 3\ncuda        no training: no driver\n");
}

}  // namespace
}  // namespace wisp
