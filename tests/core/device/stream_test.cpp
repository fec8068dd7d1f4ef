#include "core/device/stream.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// A gate that stops a stream until it is opened.
class Gate {
 public:
  explicit Gate(const Stream& stream) {
    stream.submit([opened = promise_.get_future().share()] { opened.wait(); });
  }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
};

TEST(Stream, ImmediateRunsInsideSubmit) {
  const Stream stream = Stream::immediate();
  std::thread::id id;
  stream.submit([&] { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(Stream, ImmediateThrowsFromSubmit) {
  EXPECT_THROW(Stream::immediate().submit([] { throw std::runtime_error("x"); }),
               std::runtime_error);
}

TEST(Stream, LateRunsInOrderOnItsOwnThread) {
  const Stream stream = Stream::late();
  std::vector<int> log;
  Gate gate(stream);
  for (int i = 0; i < 10; ++i) stream.submit([&log, i] { log.push_back(i); });
  EXPECT_TRUE(log.empty());
  gate.open();
  stream.synchronize();
  EXPECT_EQ(log, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Stream, LateRethrowsAtSynchronize) {
  const Stream stream = Stream::late();
  stream.submit([] { throw std::runtime_error("late"); });
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
}

TEST(Stream, IdsDifferAndCopiesShareThem) {
  const Stream a = Stream::immediate();
  const Stream b = Stream::late();
  EXPECT_NE(a.id().number, b.id().number);
  EXPECT_EQ(Stream(b).id().number, b.id().number);
}

TEST(Event, OrdersOneStreamAfterAnother) {
  const Stream writer = Stream::late();
  const Stream reader = Stream::late();
  int value = 0;
  int read = -1;
  Event written;
  Gate gate(writer);
  writer.submit([&] { value = 1; });
  written.record(writer);
  written.wait(reader);
  reader.submit([&] { read = value; });
  gate.open();
  reader.synchronize();
  EXPECT_EQ(read, 1);
}

TEST(Event, WithoutItTheLateStreamShowsTheOldValue) {
  const Stream writer = Stream::late();
  const Stream reader = Stream::late();
  int value = 0;
  int read = -1;
  Gate gate(writer);
  writer.submit([&] { value = 1; });
  reader.submit([&] { read = value; });
  reader.synchronize();
  gate.open();
  writer.synchronize();
  EXPECT_EQ(read, 0);
}

TEST(Event, WaitsForWhatWasRecordedAtTheCall) {
  const Stream first = Stream::late();
  Event event;
  event.record(first);
  event.synchronize();
  int value = 0;
  Gate gate(first);
  first.submit([&] { value = 2; });
  const Stream second = Stream::late();
  event.wait(second);  // waits for the recorded point, before the gate
  second.synchronize();
  EXPECT_EQ(value, 0);
  event.record(first);
  gate.open();
  event.synchronize();
  EXPECT_EQ(value, 2);
}

TEST(Event, HasATimeOnceItIsReached) {
  const Stream stream = Stream::late();
  Event begin = Event::timed(), end = Event::timed();
  begin.record(stream);
  Gate gate(stream);
  end.record(stream);
  EXPECT_NE(error_of([&] { end.us_since(begin); }).find("not reached yet"), std::string::npos);
  gate.open();
  stream.synchronize();
  EXPECT_GE(end.us_since(begin), 0.0);
}

TEST(Event, OfAFailedStreamHoldsNobodyUp) {
  const Stream stream = Stream::late();
  Event before;
  {
    Gate gate(stream);
    stream.submit([] { throw Error("no good"); });
    before.record(stream);  // dropped with the queue
    gate.open();
  }
  before.synchronize();
  Event after;
  after.record(stream);
  after.synchronize();
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "no good");
}

TEST(Event, NeverRecordedHoldsNobodyUp) {
  const Event event;
  event.synchronize();
  event.wait(Stream::immediate());
}

TEST(Stream, HasEndedWhenItsLastHandleHasFinishedTheWork) {
  for (const bool late : {false, true}) {
    std::optional<Stream> stream = late ? Stream::late() : Stream::immediate();
    const StreamId id = stream->id();
    bool ran = false, ended_while_it_ran = false;
    stream->submit([&] {
      ended_while_it_ran = id.has_ended();
      ran = true;
    });
    {
      const Stream other = *stream;
      *stream = late ? Stream::late() : Stream::immediate();  // another stream in its place
      EXPECT_FALSE(id.has_ended());
    }
    EXPECT_TRUE(id.has_ended());
    EXPECT_TRUE(ran);
    EXPECT_FALSE(ended_while_it_ran);
    EXPECT_FALSE(stream->id().has_ended());
  }
}

}  // namespace
}  // namespace wisp
