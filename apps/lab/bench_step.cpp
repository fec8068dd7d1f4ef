#include "apps/lab/bench_step.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/setup/prepared.h"
#include "apps/setup/shared_configuration.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace wisp {
namespace {

constexpr int kWarmUp = 3;
constexpr double kMb = 1 << 20;

double resident_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0 / kMb;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string StepTiming::json() const {
  nlohmann::ordered_json row = {{"case", name},
                                {"impl", impl},
                                {"batch", batch},
                                {"rate", std::round(rate * 10.0) / 10.0},
                                {"unit", unit},
                                {"ms", std::round(ms * 100.0) / 100.0},
                                {"peak_mb", std::round(peak_mb)},
                                {"loss0", losses.front()},
                                {"loss1", losses.back()}};
  if (peak_device_mb > 0.0) row["peak_device_mb"] = std::round(peak_device_mb);
  if (device.kernels > 0) {
    const auto of_step = [&](int64_t count) {
      return static_cast<double>(count) / static_cast<double>(steps);
    };
    row["kernels"] = of_step(device.kernels);
    row["calls"] = of_step(device.calls);
    row["copies"] = of_step(device.copies);
    row["fallbacks"] = of_step(device.fallbacks);
  }
  return row.dump();
}

StepTiming bench_step(Config config, const std::string& name, double seconds, int64_t least_steps) {
  Prepared run(std::move(config));
  check_processes_agree(run.options(), configuration_of(run.config().keys()));
  run.load();
  const TrainOptions& options = run.options();
  const double base_mb = resident_mb();
  StepTiming timing;
  const auto time_steps = [&](Replica& replica) {
    const std::unique_ptr<Loader> loader = run.loader(Split::train, replica.rank());
    loader->start_epoch(0);
    const Batch batch = *loader->next();
    const auto steps_per_epoch = static_cast<double>(loader->batches() / options.accumulate);
    std::vector<double> times, losses;
    DeviceWork before;
    double work = 0.0;  // images, tokens or frames of the last step
    double deadline = 0.0;
    bool more = true;
    for (int64_t step = 0; more; ++step) {
      if (step == kWarmUp) {
        replica.barrier();
        before = device_work();
        replica.barrier();
        deadline = now_us() + seconds * 1e6;
      }
      const double begin = now_us();
      const StepReport report = replica.step(
          step, static_cast<double>(step) / steps_per_epoch, [&] { return batch; },
          [&] { return batch; });
      replica.context().stream.synchronize();  // waits for the device's update
      replica.barrier();                       // and for other workers'
      if (step >= kWarmUp) times.push_back((now_us() - begin) * 1e-3);
      work = report.work;
      losses.push_back(replica.tally().mean_loss());
      // rank 0's clock decides for all workers
      double done = replica.rank() == 0 && step >= kWarmUp && now_us() > deadline &&
                    std::ssize(times) >= least_steps;
      replica.sum_over_workers({&done, 1});
      more = done == 0.0;
    }
    if (replica.rank() != world().rank) return;
    const Context& context = replica.context();
    timing.name = name;
    timing.impl = concat("wisp ", context.backend.name(), " ", options.precision, " ",
                         options.device, " ", options.workers, "x", context.threads, "t");
    timing.batch = options.batch;
    timing.unit = run.facts().work + "/s";
    timing.ms = median(times);
    timing.rate = work / (timing.ms * 1e-3);
    timing.losses = losses;
    timing.device = device_work() - before;
    if (context.pool.device().is_cuda())
      timing.peak_device_mb = static_cast<double>(context.pool.stats().peak_used_bytes) / kMb;
    timing.steps = std::ssize(times) * (world().processes() ? 1 : options.workers);
  };
  run_replicas(run, time_steps, options.link);
  timing.peak_mb = resident_mb() - base_mb;
  return timing;
}

}  // namespace wisp
