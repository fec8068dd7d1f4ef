// Starts the workers of a run: threads of this process, or this one of the processes that a
// launcher such as mpirun started together. Gives threads their turns.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "distributed/communicator/communicator.h"
#include "distributed/communicator/link.h"

namespace wisp {

/// The processes that a launcher started together, and this one's place among them.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0, neighbours = 1;  // among those of this process's machine; these
  /// Whether workers are processes, one each, and not threads of this one.
  bool processes() const { return size > 1; }
};

/// This process's world. The first call starts MPI if there are several processes, and all of them
/// have to make it. Throws Error if this program has no MPI, or finds other processes than the
/// launcher started.
const World& world();

/// What this process has to print of its failure before it ends with a non-zero status; empty if
/// rank 0 speaks for all. Ends the other processes too.
std::string last_words(const std::string& cause);

/// Lets `at_once` workers compute at a time, first come first served. A worker holds its turn while
/// it computes and gives it up in every wait for another worker.
class Turns {
 public:
  explicit Turns(int at_once) : admitted_(at_once) {}
  /// Waits for a turn. Throws Error with the cause of abort().
  void acquire();
  void release();
  /// Workers that wait for a turn now.
  int64_t waiting() const;
  /// Ends all current and later waits.
  void abort(const std::string& cause);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t asked_ = 0;     // tickets drawn
  int64_t admitted_ = 0;  // tickets below this one may compute
  bool aborted_ = false;
  std::string cause_;
};

struct LaunchOptions {
  int threads = 0;          // OpenMP threads of each worker; 0: its share of the machine's cores
  bool turns = false;       // one thread computes at a time: one worker's activations in memory
  LinkSpec link;            // emulated, between threads
  double timeout_s = 60.0;  // longest wait for another worker
};

struct Worker {
  int rank = 0;
  int threads = 1;
  Communicator& communicator;
  Turns& turns;  // held when the worker starts
};

/// Runs `work` once per worker of this process: all `workers`, each in a thread of its own, or, if
/// workers are processes, this one's. Returns when all have ended. A worker that throws ends the
/// others' collectives and turns with its cause; the first cause is thrown as Error, "rank R: …" if
/// there is more than one worker. Throws Error for turns or a link among processes, and for another
/// number of workers than processes.
void run_workers(int workers, const LaunchOptions& options,
                 const std::function<void(Worker&)>& work);

/// An environment variable, empty if it is not set. The one place that reads the environment.
std::string environment(const std::string& name);

}  // namespace wisp
