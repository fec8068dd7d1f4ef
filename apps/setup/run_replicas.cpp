#include "apps/setup/run_replicas.h"

#include "apps/setup/worker_memory.h"

namespace wisp {

void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work) {
  const TrainOptions& options = run.options();
  const WorkerMemory memory(options);
  const LaunchOptions launch{options.threads, options.turns, {}, options.timeout_s};
  run_workers(options.workers, launch, [&](Worker& worker) {
    const Shared shared = run.shared(memory.of(worker.rank));
    Replica replica(shared, worker);
    work(replica);
  });
}

}  // namespace wisp
