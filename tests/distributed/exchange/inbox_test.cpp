#include "distributed/exchange/inbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace wisp {
namespace {

TEST(Inbox, GivesItemsInOrder) {
  Inbox inbox;
  inbox.post(3);
  inbox.post(1);
  EXPECT_EQ(inbox.take(), 3);
  EXPECT_EQ(inbox.take(), 1);
  EXPECT_EQ(inbox.take(), -1);
}

TEST(Inbox, ForgetsItemsOnClear) {
  Inbox inbox;
  inbox.post(3);
  inbox.clear();
  EXPECT_EQ(inbox.take(), -1);
}

TEST(Inbox, DoesNotWaitIfSomethingHappenedSince) {
  Inbox inbox;
  const uint64_t seen = inbox.events();
  inbox.ring();
  inbox.wait(seen);
}

/// wait() takes a point in time. A process that was stopped would wait out an interval afterwards.
TEST(Inbox, WaitsForAMomentAndNotAnInterval) {
  Inbox inbox;
  inbox.wait(inbox.events(), now_us());
  inbox.wait(inbox.events(), 0.0);
}

TEST(Inbox, WakesForPostsAndRings) {
  Inbox inbox;
  for (int i = 0; i < 100; ++i) {
    const uint64_t seen = inbox.events();
    std::thread other([&] { i % 2 ? inbox.ring() : inbox.post(i); });
    inbox.wait(seen);
    other.join();
  }
  for (int i = 0; i < 100; i += 2) EXPECT_EQ(inbox.take(), i);
}

TEST(Inbox, CloseEndsCurrentAndLaterWaits) {
  Inbox inbox;
  const uint64_t seen = inbox.events();
  std::thread other([&] { inbox.close(); });
  EXPECT_THROW(inbox.wait(seen), Inbox::Closed);
  other.join();
  EXPECT_THROW(inbox.wait(seen, 0.0), Inbox::Closed);
}

}  // namespace
}  // namespace wisp
