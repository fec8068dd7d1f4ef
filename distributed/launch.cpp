#include "distributed/launch.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/omp_threads.h"
#include "distributed/communicator/thread_communicator.h"
#if WISP_MPI
#include "distributed/communicator/mpi_communicator.h"
#endif

namespace wisp {
namespace {

constexpr double kRankZeroSpeaksS = 2.0;

/// The number of processes that a launcher (mpirun, srun) reports.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const std::string size = environment(name); !size.empty()) return std::atoi(size.c_str());
  }
  return 1;
}

/// The world that this process has joined. It is joined at the first call and left when the process
/// ends.
struct Joined {
  Joined() {
    try {
      join();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  void join() {
    const int launched = launched_processes();
    if (launched <= 1) return;
#if WISP_MPI
    processes = join_mpi();
#endif
    WISP_CHECK(processes, "a launcher started ", launched,
               " processes, but this program was built without MPI: install libopenmpi-dev and "
               "build it again, or start one process, whose workers are threads");
    world = {processes->rank(), processes->size(), processes->local_rank(),
             processes->neighbours()};
    WISP_CHECK(
        world.size == launched, "the launcher started ", launched, " processes, but MPI sees ",
        world.size,
        "; srun needs --mpi=pmix, mpirun must be of the MPI that this program was built with");
  }

  World world;
  std::unique_ptr<ProcessGroup> processes;  // null in a world of one
  std::string failure;                      // reason why it found no world
};

const Joined& joined_world() {
  static const Joined joined;
  return joined;
}

/// The state that the workers of a run share.
class Run {
 public:
  Run(Group& group, bool turns, int threads)
      : group_(group),
        turns_(turns ? 1 : group.size()),
        threads_(threads > 0 ? threads : core_share(group.size()).threads) {}

  void work(int rank, const std::function<void(Worker&)>& work) noexcept {
    try {
      require_omp_threads(threads_, "threads");
      const OmpThreads threads(threads_);
      Worker worker{rank, threads_, group_.communicator(rank), turns_};
      turns_.acquire();
      work(worker);
      turns_.release();
    } catch (const std::exception& error) {
      fail(rank, error.what());
    } catch (...) {
      fail(rank, "an exception that is no std::exception");
    }
  }
  void fail(int rank, const std::string& cause) {
    group_.abort(rank, cause);
    turns_.abort(group_.failure());
  }

 private:
  Group& group_;
  Turns turns_;
  int threads_;
};

}  // namespace

void Turns::acquire() {
  std::unique_lock lock(mutex_);
  const int64_t ticket = asked_++;
  changed_.wait(lock, [&] { return aborted_ || ticket < admitted_; });
  if (aborted_) throw Error(cause_);
}

void Turns::release() {
  {
    std::lock_guard lock(mutex_);
    ++admitted_;
  }
  changed_.notify_all();
}

int64_t Turns::waiting() const {
  std::lock_guard lock(mutex_);
  return std::max<int64_t>(0, asked_ - admitted_);
}

void Turns::abort(const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    if (!aborted_) cause_ = cause;
    aborted_ = true;
  }
  changed_.notify_all();
}

const World& world() {
  const Joined& joined = joined_world();
  WISP_CHECK(joined.failure.empty(), joined.failure);
  return joined.world;
}

CoreShare core_share(int workers) {
  CoreLimits limits = CoreLimits::here();
  if (!world().processes()) return core_share(limits, workers);
  const ProcessGroup& processes = *joined_world().processes;
  limits.together = std::max(limits.own, processes.cores());
  return core_share(limits, processes.neighbours());
}

std::string last_words(const std::string& cause) {
  ProcessGroup* processes = joined_world().processes.get();
  if (!processes) return cause;
  processes->abort(processes->rank(), cause);
  if (processes->rank() == 0) return cause;
  return processes->ends_too(0, kRankZeroSpeaksS) ? "" : processes->failure();
}

void run_workers(int workers, const LaunchOptions& options,
                 const std::function<void(Worker&)>& work) {
  std::string failure;
  if (world().processes()) {
    ProcessGroup* processes = joined_world().processes.get();
    WISP_CHECK(workers == world().size, workers, " workers among ", world().size,
               " processes, expected one each");
    WISP_CHECK(!options.turns && options.link.gbit_per_s <= 0.0 && options.link.latency_us <= 0.0,
               "turns and emulated links are between threads, but these workers are processes");
    processes->set_timeout(options.timeout_s);
    Run run(*processes, false, options.threads);
    run.work(processes->rank(), work);
    failure = processes->failure();
  } else {
    WISP_CHECK(workers <= kMostThreads, "workers is ", workers, ", expected at most ", kMostThreads,
               " in one process");
    ThreadGroup group(workers, options.link, options.timeout_s);
    Run run(group, options.turns, options.threads);
    std::vector<std::thread> threads;
    try {
      for (int rank = 0; rank < workers; ++rank)
        threads.emplace_back([&run, &work, rank] { run.work(rank, work); });
    } catch (const std::system_error& error) {
      run.fail(static_cast<int>(threads.size()),
               concat("its thread did not start: ", error.what(),
                      "; are threads or addresses limited (ulimit -u, ulimit -v)?"));
    }
    for (std::thread& thread : threads) thread.join();
    failure = group.failure();
  }
  if (!failure.empty()) throw Error(failure);
}

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

}  // namespace wisp
