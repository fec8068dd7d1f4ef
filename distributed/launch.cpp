#include "distributed/launch.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "distributed/thread_communicator.h"

namespace wisp {
namespace {

int threads_per_worker(int workers, int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / workers);
}

/// What the workers of a run share.
class Run {
 public:
  Run(int workers, const LaunchOptions& options)
      : group_(workers, options.link, options.timeout_s),
        turns_(options.turns ? 1 : workers),
        threads_(threads_per_worker(workers, options.threads)) {}

  void work(int rank, const std::function<void(Worker&)>& work) noexcept {
    try {
      omp_set_num_threads(threads_);
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
  std::string failure() const { return group_.failure(); }

 private:
  ThreadGroup group_;
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

void run_workers(int workers, const LaunchOptions& options,
                 const std::function<void(Worker&)>& work) {
  Run run(workers, options);
  std::vector<std::thread> threads;
  try {
    for (int rank = 0; rank < workers; ++rank)
      threads.emplace_back([&run, &work, rank] { run.work(rank, work); });
  } catch (const std::system_error& error) {
    run.fail(static_cast<int>(threads.size()), concat("its thread did not start: ", error.what()));
  }
  for (std::thread& thread : threads) thread.join();
  if (const std::string failure = run.failure(); !failure.empty()) throw Error(failure);
}

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

}  // namespace wisp
