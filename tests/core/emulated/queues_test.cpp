#include "core/emulated/queues.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/copy.h"
#include "core/emulated/runtime.h"
#include "core/loops/parallel.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using emulated::Queues;

struct AddTo {
  const float* x;
  float* y;
  float value;
  void operator()() const { *y = (x ? *x : 0.0f) + value; }
};

/// The first of two streams writes x and the second reads it, with or without an event between
/// them.
float read_by_another(bool ordered) {
  TestContext rig({.device = first_device()});
  const Stream other = Stream::on(first_device());
  const Tensor x = rig.context.zeros({2}, DType::f32);
  float* data = x.data<float>();
  Event made;
  run_once(rig.stream, AddTo{nullptr, data, 5.0f});
  made.record(rig.stream);
  if (ordered) made.wait(other);
  run_once(other, AddTo{data, data + 1, 1.0f});
  other.synchronize();
  return fetch(rig.stream, x).data<float>()[1];
}

TEST(EmulatedQueues, ShowAMissingEvent) {
  EXPECT_EQ(read_by_another(true), 6.0f);
  EXPECT_EQ(read_by_another(false), 1.0f);
}

/// A write that must wait for a read. Late execution alone does not show a missing event.
float written_after_read(bool ordered) {
  TestContext rig({.device = first_device()});
  const Stream writer = Stream::on(first_device());
  const Tensor x = rig.context.zeros({2}, DType::f32);
  float* data = x.data<float>();
  Event read;
  run_once(rig.stream, AddTo{data, data + 1, 0.0f});
  read.record(rig.stream);
  if (ordered) read.wait(writer);
  run_once(writer, AddTo{nullptr, data, 5.0f});
  rig.stream.synchronize();
  return fetch(rig.stream, x).data<float>()[1];
}

TEST(EmulatedQueues, ShowAWriteThatCameTooEarlyWhenShuffled) {
  EXPECT_EQ(written_after_read(false), 0.0f);  // right by luck, because the write is late
  bool wrong = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Queues::get().shuffle(seed);
    EXPECT_EQ(written_after_read(true), 0.0f);
    wrong = wrong || written_after_read(false) == 5.0f;
  }
  Queues::get().shuffle(0);
  EXPECT_TRUE(wrong);
}

TEST(EmulatedQueues, AreInNoHurry) {
  const Stream stream = Stream::on(first_device());
  TestContext rig({.device = first_device()});
  bool ran = false;
  emulated::enqueue(stream.native(), [&] { ran = true; });
  Event after;
  after.record(stream);
  EXPECT_FALSE(after.reached());
  EXPECT_FALSE(after.reached());
  EXPECT_FALSE(ran);
  EXPECT_TRUE(after.reached());
  EXPECT_TRUE(ran);
}

TEST(EmulatedQueues, TellWhatFailedForLife) {
  {
    const Stream stream = Stream::on(first_device());
    bool ran = false;
    emulated::enqueue(stream.native(), [] { throw Error("no good"); });
    emulated::enqueue(stream.native(), [&] { ran = true; });
    EXPECT_NE(error_of([&] { stream.synchronize(); }).find("no good (cudaErrorLaunchFailure)"),
              std::string::npos);
    EXPECT_NE(error_of([&] { Stream::on(first_device()).synchronize(); }), "");
    EXPECT_FALSE(ran);
  }
  Queues::get().forgive();
  Stream::on(first_device()).synchronize();
}

TEST(EmulatedQueues, BelongToADevice) {
  const Stream second = Stream::on({Device::Kind::cuda, 1});
  const Stream first = Stream::on({Device::Kind::cuda, 0});  // makes device 0 current
  const std::string refused = error_of([&] { emulated::enqueue(second.native(), [] {}); });
  EXPECT_NE(refused.find("the stream is of device 1, the thread's current one is 0"),
            std::string::npos)
      << refused;
}

/// Each of two threads waits for work that depends on the other thread's work.
TEST(EmulatedQueues, DoNotLockEachOtherUp) {
  for (int round = 0; round < 200; ++round) {
    TestContext rig({.device = first_device()});
    const Stream a = Stream::on(first_device()), b = Stream::on(first_device());
    const Tensor x = rig.context.zeros({1}, DType::f32);
    float* data = x.data<float>();
    Event events[8];
    for (int i = 0; i < 8; ++i) {
      const Stream& from = i % 2 == 0 ? a : b;
      run_once(from, AddTo{data, data, 1.0f});
      events[i].record(from);
      events[i].wait(i % 2 == 0 ? b : a);
    }
    std::thread one([&] { a.synchronize(); });
    std::thread two([&] { b.synchronize(); });
    one.join();
    two.join();
    EXPECT_EQ(*fetch(rig.stream, x).data<float>(), 8.0f);
  }
}

}  // namespace
}  // namespace wisp
