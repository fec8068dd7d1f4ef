#include "distributed/stream_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/copy.h"
#include "core/device_work.h"
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

class DeviceStreamWatch : public DeviceTest {
 protected:
  TestContext rig_{{.device = first_device()}};
  StreamWatch watch_{rig_.stream};
  const Tensor from_ = rig_.context.zeros({1000}, DType::i32);
  const Tensor to_ = rig_.context.empty({1000}, DType::i32);

  void work() { copy(rig_.stream, from_, to_); }
};

TEST_F(DeviceStreamWatch, CallsInOrderWhenItIsPolled) {
  const int64_t waits = device_work().waits;
  std::string order;
  work();
  watch_.then(watch_.mark(), [&](const StreamWatch::Span&) {
    order += 'a';
    work();
    watch_.then(watch_.mark(), [&](const StreamWatch::Span&) { order += 'c'; });
  });
  watch_.then(watch_.mark(), [&](const StreamWatch::Span&) { order += 'b'; });
  EXPECT_EQ(order, "");
  EXPECT_FALSE(watch_.idle());
  while (!watch_.idle()) watch_.poll();
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(watch_.poll());
  EXPECT_EQ(device_work().waits, waits);
  EXPECT_EQ(fetch(rig_.stream, to_).data<int32_t>()[999], 0);
}

TEST_F(DeviceStreamWatch, TimesWhatIsBetweenTwoPoints) {
  double ms = -1.0;
  StreamWatch::Mark begin = watch_.mark();
  work();
  watch_.time(std::move(begin), [&](const StreamWatch::Span& span) {
    ms = span.ms();
    EXPECT_LE(span.end_us, now_us());
  });
  EXPECT_EQ(ms, -1.0);
  while (!watch_.idle()) watch_.poll();
  EXPECT_GE(ms, 0.0);
  EXPECT_LT(ms, 60e3);
}

TEST_F(DeviceStreamWatch, EventsHaveATimeIfTheyAreAskedTo) {
  Event plain, timed = Event::timed(), later = Event::timed();
  plain.record(rig_.stream);
  timed.record(rig_.stream);
  work();
  later.record(rig_.stream);
  EXPECT_NE(error_of([&] { later.us_since(timed); }).find("not reached yet"), std::string::npos);
  rig_.stream.synchronize();
  EXPECT_GE(later.us_since(timed), 0.0);
  EXPECT_NE(error_of([&] { later.us_since(plain); }).find("not timed"), std::string::npos);
}

}  // namespace
}  // namespace wisp
