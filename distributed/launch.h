// The start of a run's workers: as threads of this process, or as one of the processes that a
// launcher such as mpirun started together. Also turns of worker threads, for any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "core/base/core_share.h"
#include "distributed/communicator/communicator.h"
#include "distributed/communicator/link.h"

namespace wisp {

/// The processes that a launcher started together, and the position of this one.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0, neighbours = 1;  // index among this machine's processes; their number
  /// Whether workers are processes, not threads of this one.
  bool processes() const { return size > 1; }
};

/// This process's world. If there are several processes, the first call starts MPI, and all of them
/// must make it. Throws Error if this program has no MPI, or finds other processes than the
/// launcher started.
const World& world();

/// The text that this process prints about its failure before it ends with a non-zero status; empty
/// if rank 0 prints it for all. Ends the other processes too.
std::string last_words(const std::string& cause);

/// A limit of `at_once` workers that compute at the same time, first come first served. A worker
/// holds its turn while it computes, and releases it in every wait for another worker.
class Turns {
 public:
  explicit Turns(int at_once) : admitted_(at_once) {}
  /// Waits for a turn. Throws Error with the cause of abort().
  void acquire();
  void release();
  /// Number of workers that wait for a turn now.
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

/// The threads of each worker of this world where their number is not given: `workers` threads of
/// this process, or the processes of this machine.
CoreShare core_share(int workers);

struct LaunchOptions {
  int threads = 0;          // OpenMP threads of each worker; 0: those of core_share()
  bool turns = false;       // one worker computes at a time; memory holds its activations only
  LinkSpec link;            // emulated link between threads
  double timeout_s = 60.0;  // longest wait for another worker
};

/// A worker, as run_workers() passes it to the worker's thread.
struct Worker {
  int rank = 0;
  int threads = 1;
  Communicator& communicator;
  Turns& turns;  // the worker holds its turn at the start
};

/// Runs `work` once per worker of this process: for all `workers`, each in its own thread, or for
/// the one worker of a process. Returns when all have ended. If a worker throws, the collectives
/// and turns of the others end with its cause. The first cause is thrown as Error, with "rank R: …"
/// if there are several workers. Throws Error for turns or a link among processes, and if `workers`
/// differs from the number of processes. A worker whose threads OpenMP or the system does not grant
/// fails before its work.
void run_workers(int workers, const LaunchOptions& options,
                 const std::function<void(Worker&)>& work);

/// The value of an environment variable; empty if not set. No other code reads the environment.
std::string environment(const std::string& name);

}  // namespace wisp
