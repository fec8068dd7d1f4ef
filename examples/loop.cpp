// A training loop of your own: workers, replicas and loaders without the trainer's epochs, output
// and files.
#include <cstdio>
#include <exception>

#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"
#include "apps/setup/worker_memory.h"

int main() try {
  wisp::Prepared run(wisp::Config::load("train.toml", {}));
  run.load();
  const wisp::WorkerMemory memory(run.options());
  // Each worker is a thread that runs this function with its own model and loader.
  wisp::run_workers(run.options().workers, {}, [&](wisp::Worker& worker) {
    const wisp::Shared shared = run.shared(memory.of(worker.rank));
    wisp::Replica replica(shared, worker);
    const auto loader = run.loader(wisp::Split::train, worker.rank);
    loader->start_epoch(0);
    for (int64_t step = 0; step < loader->batches(); ++step) {
      const wisp::StepReport report = replica.step(step, 0.0, [&] { return *loader->next(); });
      const wisp::TallyValues mean = replica.tally();  // a collective that all workers call
      if (worker.rank == 0)
        std::printf("step %2d: loss %.3f, %d bytes sent\n", static_cast<int>(step),
                    mean.mean_loss(), static_cast<int>(report.cost.bytes_sent));
    }
  });
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
