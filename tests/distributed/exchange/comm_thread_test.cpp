#include "distributed/exchange/comm_thread.h"

#include <gtest/gtest.h>

#include <cmath>

#include "distributed/launch.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

Tensor scalar(double value) {
  Tensor tensor({1}, DType::f64);
  *tensor.data<double>() = value;
  return tensor;
}

/// The error text of two workers, each of which does work(rank, comm thread).
std::string failure_of(const std::function<void(int, CommThread&)>& work) {
  return error_of([&] {
    run_workers(2, {.threads = 1}, [&](Worker& worker) {
      TestContext test;
      Trace trace{worker.rank, {}};
      CommThread thread(worker.communicator, test.context, trace);
      work(worker.rank, thread);
    });
  });
}

TEST(CommThread, TellsAllRanksOfAPostedTaskThatFails) {
  const std::string failure = failure_of([](int rank, CommThread& thread) {
    const Tensor loss = scalar(1.0);
    Event written;
    thread.post([&] {
      if (rank == 1) throw Error("wheel came off");
      thread.agree(written, loss, 7, 0);
    });
    thread.drain();
  });
  EXPECT_EQ(failure, "rank 1: wheel came off");
}

TEST(CommThread, ATaskThatWaitsEndsWithIt) {
  EXPECT_EQ(failure_of([](int, CommThread& thread) {
              thread.post([&] { thread.courier().await_stream([] { return false; }); });
            }),
            "no error");
}

TEST(CommThread, AgreesOnTheOutcomeOfAStep) {
  const std::string failure = failure_of([](int rank, CommThread& thread) {
    Event written;
    const auto outcome = [&](double value, uint64_t hash) {
      const Tensor loss = scalar(value);
      Outcome agreed{};
      thread.post([&] { agreed = thread.agree(written, loss, hash, 3); });
      thread.drain();
      return agreed;
    };
    EXPECT_EQ(outcome(1.0, 7), Outcome::applied);
    EXPECT_EQ(outcome(rank == 1 ? NAN : 1.0, 7), Outcome::skipped);
    if (rank == 0) thread.request_stop();
    EXPECT_EQ(outcome(1.0, 7), Outcome::stop);
    outcome(1.0, rank == 1 ? 8 : 7);
  });
  EXPECT_NE(failure.find("step 3: the ranks' plans of what to exchange differ"), failure.npos)
      << failure;
}

}  // namespace
}  // namespace wisp
