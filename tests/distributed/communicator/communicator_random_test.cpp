// Tests of long sequences of random collectives.
#include <gtest/gtest.h>

#include "tests/support/random_collective.h"
#include "tests/support/ranks.h"

namespace wisp {
namespace {

TEST(Communicator, SurvivesThousandsOfRandomCollectives) {
  const int workers = world().processes() ? world().size : 4;
  run_well(workers, [&](Communicator& comm) {
    std::mt19937 shared(1), pauses(static_cast<unsigned>(comm.rank()) + 2);
    int wrong = 0;
    for (int i = 0; i < 3000; ++i) wrong += wrong_words(Draw(shared, workers), comm, pauses);
    EXPECT_EQ(wrong, 0);
  });
}

}  // namespace
}  // namespace wisp
