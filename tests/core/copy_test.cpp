#include "core/copy.h"

#include <gtest/gtest.h>

#include "core/device_words.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class Copy : public DeviceTest {};
class DeviceStream : public DeviceTest {};
class DeviceEvent : public DeviceTest {};

std::vector<float> floats(const Tensor& x) {
  return {x.data<float>(), x.data<float>() + x.numel()};
}

TEST_F(Copy, ReachesADeviceAndComesBack) {
  TestContext rig({.device = first_device()});
  const Tensor host = tensor_of<float>({1, 2, 3, 4});
  const Tensor a = rig.context.zeros({4}, DType::f32), b = rig.context.empty({4}, DType::f32);
  EXPECT_EQ(floats(fetch(rig.stream, a)), (std::vector<float>{0, 0, 0, 0}));
  copy_now(rig.stream, host, a);
  copy(rig.stream, a, b);
  const Tensor back({4}, DType::f32);
  copy_now(rig.stream, b, back);
  EXPECT_EQ(floats(back), floats(host));
  clear(rig.stream, b);
  EXPECT_EQ(floats(fetch(rig.stream, b)), (std::vector<float>{0, 0, 0, 0}));
}

TEST_F(Copy, OnTheCpuIsInTheOrderOfTheStream) {
  TestContext rig;
  const Tensor host = tensor_of<float>({1, 2}), there({2}, DType::f32);
  copy(rig.stream, host, there);
  EXPECT_EQ(floats(fetch(rig.stream, there)), floats(host));
  EXPECT_EQ(fetch(rig.stream, there).raw(), there.raw());
}

TEST_F(Copy, InOrderTakesPinnedMemory) {
  TestContext rig({.device = first_device()});
  const Tensor device = rig.context.zeros({2}, DType::f32);
  const Tensor pinned = host_tensor({2}, DType::f32, first_device());
  EXPECT_EQ(floats(pinned), (std::vector<float>{0, 0}));
  copy(rig.stream, pinned, device);
  rig.stream.synchronize();  // before the pinned memory is freed
}

TEST_F(Copy, ExchangesTwoTensors) {
  TestContext rig({.device = first_device()});
  const Tensor a = rig.context.empty({3}, DType::f32), b = rig.context.empty({3}, DType::f32);
  const auto fill = [&](const Tensor& x, float value) {
    write_from_host(rig.stream, x,
                    [&](const Tensor& host) { std::fill_n(host.data<float>(), 3, value); });
  };
  fill(a, 1.0f);
  fill(b, 2.0f);
  swap_contents(rig.stream, a, b);
  EXPECT_EQ(floats(fetch(rig.stream, a)), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(floats(fetch(rig.stream, b)), (std::vector<float>{1, 1, 1}));
}

TEST_F(Copy, OfWordsIsThereWhenTheStreamHasComeToIt) {
  for (const Device& device : {Device{}, first_device()}) {
    TestContext rig({.device = device});
    const DeviceWords words(rig.context, {2}, DType::f32);
    EXPECT_EQ(floats(words.host()), (std::vector<float>{0, 0}));
    copy_now(rig.stream, tensor_of<float>({3, 4}), words.device());
    words.fetch(rig.stream);
    rig.stream.synchronize();
    EXPECT_EQ(floats(words.host()), (std::vector<float>{3, 4}));
  }
}

TEST_F(Copy, RefusesWhatDoesNotFit) {
  TestContext rig({.device = first_device()});
  const Tensor device = rig.context.zeros({2}, DType::f32);
  EXPECT_EQ(error_of([&] { copy_now(rig.stream, Tensor({3}, DType::f32), device); }),
            "copy: from (3) f32 to (2) f32");
  EXPECT_EQ(error_of([&] { copy_now(Stream::immediate(), Tensor({2}, DType::f32), device); }),
            "copy: a tensor on " + first_device().str() + " by a stream of cpu");
  EXPECT_EQ(error_of([&] { device.clear(); }),
            "clear: a tensor on " + first_device().str() + ", which its streams have to clear");
}

TEST_F(DeviceStream, RefusesWorkOfTheHost) {
  const Stream stream = Stream::on(first_device());
  EXPECT_EQ(error_of([&] { stream.submit([] {}); }),
            "a stream of " + first_device().str() +
                " was given work of the host's, which it cannot order");
}

TEST_F(DeviceStream, OfADeviceThatIsNotThereIsAnError) {
  const std::string refused = error_of([] { Stream::on({Device::Kind::cuda, 99}); });
  EXPECT_NE(refused.find(":99: there are "), std::string::npos) << refused;
}

TEST_F(DeviceEvent, OrdersStreamsOfOneDevice) {
  TestContext rig({.device = first_device()});
  const Stream other = Stream::on(first_device());
  const Tensor pinned = host_tensor({1}, DType::f32, first_device());
  *pinned.data<float>() = 7.0f;
  const Tensor x = rig.context.zeros({1}, DType::f32);
  Event written;
  copy(rig.stream, pinned, x);
  written.record(rig.stream);
  written.wait(other);
  const Tensor back = host_tensor({1}, DType::f32, first_device());
  copy(other, x, back);
  other.synchronize();
  EXPECT_EQ(*back.data<float>(), 7.0f);
  EXPECT_TRUE(written.reached());
}

TEST_F(DeviceEvent, OfADeviceHoldsNoStreamOfTheCpu) {
  TestContext rig({.device = first_device()});
  Event event;
  event.record(rig.stream);
  EXPECT_EQ(error_of([&] { event.wait(Stream::late()); }).find("a stream of cpu cannot wait"), 0u);
}

}  // namespace
}  // namespace wisp
