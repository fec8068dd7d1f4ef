#include "core/base/work_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/address_limit.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::string failure_of(WorkQueue& queue) {
  try {
    queue.drain();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "none";
}

TEST(WorkQueue, RunsInOrderAfterStart) {
  std::vector<int> log;
  WorkQueue queue([&] { log.push_back(-1); });
  for (int i = 0; i < 100; ++i) queue.post([&log, i] { log.push_back(i); });
  queue.drain();
  ASSERT_EQ(log.size(), 101u);
  for (int i = 0; i < 101; ++i) EXPECT_EQ(log[static_cast<size_t>(i)], i - 1);
}

TEST(WorkQueue, RunsOnAThreadOfItsOwn) {
  std::thread::id id;
  WorkQueue queue;
  queue.post([&] { id = std::this_thread::get_id(); });
  queue.drain();
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST(WorkQueue, KeepsTheFirstFailureAndDropsWhatFollows) {
  bool ran = false;
  std::promise<void> gate;
  WorkQueue queue;
  queue.post([opened = gate.get_future().share()] { opened.wait(); });
  queue.post([] { throw std::runtime_error("first"); });
  queue.post([&] { ran = true; });
  queue.post([] { throw std::runtime_error("second"); });
  gate.set_value();
  EXPECT_EQ(failure_of(queue), "first");
  queue.post([&] { ran = true; });
  EXPECT_EQ(failure_of(queue), "first") << "it stays failed";
  EXPECT_FALSE(ran);
}

TEST(WorkQueue, AFailureOfStartIsKeptLikeATasks) {
  for (const bool waits : {false, true}) {
    bool ran = false;
    WorkQueue queue([] { throw std::runtime_error("no such device"); });
    if (waits) {
      EXPECT_EQ(failure_of(queue), "no such device") << "without any task";
    }
    queue.post([&] { ran = true; });
    queue.post([] { throw std::runtime_error("later"); });
    EXPECT_EQ(failure_of(queue), "no such device");
    EXPECT_FALSE(ran);
  }
  WorkQueue unasked([] { throw 1; });
}

TEST(WorkQueue, DestructorFinishesWhatWasPosted) {
  int count = 0;
  {
    WorkQueue queue;
    for (int i = 0; i < 50; ++i) queue.post([&] { ++count; });
  }
  EXPECT_EQ(count, 50);
}

TEST(WorkQueue, WhatATaskOwnsIsGoneAfterDrain) {
  auto owned = std::make_shared<int>(1);
  WorkQueue queue;
  queue.post([owned] {});
  queue.drain();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(WorkQueue, AFailureNobodyAskedForDoesNotEndTheProgram) {
  WorkQueue queue;
  queue.post([] { throw std::runtime_error("unseen"); });
}

TEST(WorkQueue, SaysThatNoMoreThreadsStart) {
  const AddressLimit limit(64 << 20);
  std::vector<std::unique_ptr<WorkQueue>> queues;
  const std::string error = error_of([&] {
    for (int i = 0; i < 1000; ++i) queues.push_back(std::make_unique<WorkQueue>());
  });
  EXPECT_EQ(error,
            "a thread did not start: Resource temporarily unavailable; are threads or addresses "
            "limited (ulimit -u, ulimit -v)?");
}

}  // namespace
}  // namespace wisp
