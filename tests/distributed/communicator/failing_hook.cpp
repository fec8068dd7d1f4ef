// A training program whose rank 2 throws in the middle of its second backward, while the others
// exchange. Workers are four threads, or the processes that mpirun started. The program prints the
// cause and exits with status 1.
#include <cstdio>

#include "tests/support/test_replica.h"

namespace wisp {
namespace {

void train(Worker& worker) {
  TestReplica replica(worker.communicator, {});
  for (int64_t step = 0; step < 3; ++step) {
    replica.step(step, small_integers, 1.0, [&](const Segment& segment) {
      if (step == 1 && worker.rank == 2 && segment.id == 1) throw Error("wheel came off");
    });
  }
}

}  // namespace
}  // namespace wisp

int main() {
  try {
    wisp::run_workers(wisp::world().processes() ? wisp::world().size : 4, {.threads = 1},
                      wisp::train);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", wisp::last_words(error.what()).c_str());
    return 1;
  }
}
