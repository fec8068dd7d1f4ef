#include "tests/support/weights_rig.h"

#include <deque>

#include "tests/support/test_context.h"

namespace wisp {
namespace {

std::unique_ptr<Synchronizer> make(const WeightsRun& run, const SynchronizerSite& site) {
  std::vector<std::string> keys = run.keys;
  if (run.more_keys) {
    for (const std::string& key : run.more_keys(site.communicator.rank())) keys.push_back(key);
  }
  Config config = Config::from_text("", "rig.toml", keys);
  SynchronizerSetup setup;
  setup.workers = run.workers;
  setup.segments = site.parameters.segments();
  setup.codes.workers = run.workers;
  setup.buckets.bucket_bytes = run.bucket_bytes;
  setup.guard = run.guard;
  setup.step = {run.clip, run.overlap};
  const auto recipe =
      SynchronizerRegistry::instance().find("synchronizer", run.method).make(config, setup);
  config.finish();
  return recipe->make(site);
}

}  // namespace

std::vector<float> WeightsWorker::weights() const {
  std::vector<float> all;
  for (const Segment& segment : parameters.segments()) {
    const float* values = parameters.weight().data<float>() + segment.offset;
    all.insert(all.end(), values, values + segment.numel);
  }
  return all;
}

void run_weights(const WeightsRun& run, const std::function<void(WeightsWorker&)>& visit) {
  run_workers(run.workers, {.threads = 1, .turns = run.turns}, [&](Worker& worker) {
    TestContext compute({.compute = DType::f32, .late = run.late});
    TestContext comm({.compute = DType::f32, .late = run.late});
    std::deque<Parameter> declared;
    std::vector<Parameter*> pointers;
    for (const int64_t numel : run.numels) {
      declared.push_back({concat("p", declared.size()), {numel}, {Init::Kind::constant, 1.0}});
      pointers.push_back(&declared.back());
    }
    FlatParameters parameters(compute.context, pointers, {});
    Trace trace(worker.rank, {});
    DamagingCommunicator damaging(worker.communicator, run.damage);
    Communicator& communicator = worker.rank == 1 ? damaging : worker.communicator;
    const std::unique_ptr<Synchronizer> sync =
        make(run, {communicator, compute.context, comm.context, parameters, trace});
    WeightsWorker state{worker.rank, -1, Outcome::applied, *sync, parameters};
    Tensor loss({1}, DType::f32);
    const auto waiting = [&](const auto& work) {
      worker.turns.release();
      work();
      worker.turns.acquire();
    };
    const auto each = [&](const auto& work) {
      int64_t i = 0;
      for (const Segment& segment : parameters.segments())
        for (int64_t k = 0; k < segment.numel; ++k) work(segment.offset + k, i++);
    };
    waiting([&] { visit(state); });
    for (int64_t step = 0; step < run.steps; ++step) {
      sync->begin({step, 0.0, kRigLr});
      *loss.data<float>() = static_cast<float>(run.loss(worker.rank, step));
      sync->forward_done(loss);
      compute.stream.submit([&] {
        each([&](int64_t at, int64_t i) {
          const double x = parameters.weight().data<float>()[at];
          parameters.grad().data<float>()[at] =
              static_cast<float>(run.gradient(worker.rank, step, i, x) / sync->summands());
        });
      });
      for (const Segment& segment : parameters.segments()) parameters.ready(segment.id);
      waiting([&] { state.outcome = sync->before_update(); });
      compute.stream.submit([&] {
        if (state.outcome == Outcome::skipped) return;
        each([&](int64_t at, int64_t) {
          parameters.weight().data<float>()[at] -=
              static_cast<float>(kRigLr) * parameters.grad().data<float>()[at];
        });
      });
      if (state.outcome != Outcome::skipped) waiting([&] { sync->after_update(); });
      compute.stream.synchronize();
      state.step = step;
      waiting([&] { visit(state); });
    }
  });
}

WeightsHistory weights_of(const WeightsRun& run) {
  WeightsHistory history(static_cast<size_t>(run.steps),
                         std::vector<std::vector<float>>(static_cast<size_t>(run.workers)));
  run_weights(run, [&](WeightsWorker& worker) {
    if (worker.step >= 0)
      history[static_cast<size_t>(worker.step)][static_cast<size_t>(worker.rank)] =
          worker.weights();
  });
  return history;
}

}  // namespace wisp
