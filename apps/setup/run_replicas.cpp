#include "apps/setup/run_replicas.h"

namespace wisp {

void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work) {
  const TrainOptions& options = run.options();
  MemoryPool pool(options.target());
  const LaunchOptions launch{options.threads, options.turns, {}, options.timeout_s};
  run_workers(options.workers, launch, [&](Worker& worker) {
    const Shared shared = run.shared(pool);
    Replica replica(shared, worker);
    work(replica);
  });
}

}  // namespace wisp
