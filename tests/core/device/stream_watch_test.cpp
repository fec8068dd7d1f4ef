#include "core/device/stream_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/copy.h"
#include "core/device/device_work.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

TEST(StreamWatch, CallsAtOnceWhereTheCpuComputes) {
  StreamWatch watch(Stream::immediate());
  bool called = false;
  watch.then(watch.mark(), [&](const StreamWatch::Span& span) {
    called = true;
    EXPECT_GE(span.ms(), 0.0);
  });
  EXPECT_TRUE(called);
  EXPECT_TRUE(watch.idle());
  EXPECT_FALSE(watch.poll());
}

TEST(StreamWatch, WaitsForALateCpuStreamUnlessOnlyTheTimeIsAskedFor) {
  const Stream stream = Stream::late();
  StreamWatch watch(stream);
  int done = 0;
  stream.submit([&] { done = 1; });
  int seen = 0;
  watch.then(watch.mark(), [&](const StreamWatch::Span&) { seen = done; });
  EXPECT_EQ(seen, 1);

  std::atomic<bool> go{false};
  stream.submit([&] {
    while (!go) std::this_thread::yield();
  });
  bool timed = false;
  watch.time(watch.mark(), [&](const StreamWatch::Span&) { timed = true; });
  EXPECT_TRUE(timed);
  go = true;
  stream.synchronize();
}

class DeviceStreamWatch : public DeviceTest {};

struct WatchedCopies {
  TestContext rig{{.device = first_device()}};
  StreamWatch watch{rig.stream};
  const Tensor from = rig.context.zeros({1000}, DType::i32);
  const Tensor to = rig.context.empty({1000}, DType::i32);

  void work() { copy(rig.stream, from, to); }
};

TEST_F(DeviceStreamWatch, CallsInOrderWhenItIsPolled) {
  WatchedCopies copies;
  const int64_t waits = device_work().waits;
  std::string order;
  copies.work();
  copies.watch.then(copies.watch.mark(), [&](const StreamWatch::Span&) {
    order += 'a';
    copies.work();
    copies.watch.then(copies.watch.mark(), [&](const StreamWatch::Span&) { order += 'c'; });
  });
  copies.watch.then(copies.watch.mark(), [&](const StreamWatch::Span&) { order += 'b'; });
  EXPECT_EQ(order, "");
  EXPECT_FALSE(copies.watch.idle());
  while (!copies.watch.idle()) copies.watch.poll();
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(copies.watch.poll());
  EXPECT_EQ(device_work().waits, waits);
  EXPECT_EQ(fetch(copies.rig.stream, copies.to).data<int32_t>()[999], 0);
}

TEST_F(DeviceStreamWatch, TimesWhatIsBetweenTwoPoints) {
  WatchedCopies copies;
  double ms = -1.0;
  StreamWatch::Mark begin = copies.watch.mark();
  copies.work();
  copies.watch.time(std::move(begin), [&](const StreamWatch::Span& span) {
    ms = span.ms();
    EXPECT_LE(span.end_us, now_us());
  });
  EXPECT_EQ(ms, -1.0);
  while (!copies.watch.idle()) copies.watch.poll();
  EXPECT_GE(ms, 0.0);
  EXPECT_LT(ms, 60e3);
}

TEST_F(DeviceStreamWatch, EventsHaveATimeIfTheyAreAskedTo) {
  WatchedCopies copies;
  Event plain, timed = Event::timed(), later = Event::timed();
  plain.record(copies.rig.stream);
  timed.record(copies.rig.stream);
  copies.work();
  later.record(copies.rig.stream);
  copies.rig.stream.synchronize();
  EXPECT_GE(later.us_since(timed), 0.0);
  EXPECT_NE(error_of([&] { later.us_since(plain); }).find("not timed"), std::string::npos);
}

}  // namespace
}  // namespace wisp
