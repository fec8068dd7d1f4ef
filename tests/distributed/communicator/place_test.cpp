#include "distributed/communicator/place.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wisp {
namespace {

TEST(Place, IsDesertedOnceItsProcessHasEnded) {
  const Place own = Place::own();
  EXPECT_FALSE(own.deserted(own));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Place other = own;
  other.process = child;
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(other.deserted(own));
}

TEST(Place, NothingIsKnownOfOtherMachinesAndContainers) {
  const Place own = Place::own();
  Place gone = own;
  gone.process = INT32_MAX;  // above any process number
  EXPECT_TRUE(gone.deserted(own));
  Place elsewhere = gone;
  elsewhere.boot[0] = elsewhere.boot[0] == 'a' ? 'b' : 'a';
  EXPECT_FALSE(elsewhere.deserted(own));
  EXPECT_FALSE(elsewhere.same_machine(own));
  Place contained = gone;
  ++contained.process_numbers;
  EXPECT_FALSE(contained.deserted(own));
  EXPECT_TRUE(contained.same_machine(own));
}

}  // namespace
}  // namespace wisp
