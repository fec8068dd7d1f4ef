// Small runs of the trainer and its replicas on drawn images, for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/setup/methods.h"
#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"
#include "apps/train/trainer.h"
#include "compression/compressor.h"
#include "core/io/checkpoint_directory.h"
#include "tests/support/temp_dir.h"

namespace wisp {

using Overrides = std::vector<std::string>;

/// TOML of a run with 4 steps of 32 samples per epoch and one thread per worker. `model` describes
/// the model.
inline std::string tiny_text(const std::string& model) {
  return concat(R"(
threads = 1
)",
                model, R"(
data.name = "synthetic"
data.train_count = 128
data.test_count = 40
train.batch = 32
train.epochs = 4
train.log_every = 1
optimizer.weight_decay = 1e-3
schedule.kind = "cosine"
compression.bucket_bytes = 16384
timeout_s = 30.0
)");
}
inline Config tiny_config_of(const std::string& model, const Overrides& overrides = {}) {
  return Config::from_text(tiny_text(model), "tiny.toml", overrides);
}

/// An MLP with one hidden layer.
inline constexpr const char* kTinyModel = "model.name = \"mlp\"\nmodel.hidden = [24]";
inline Config tiny_config(const Overrides& overrides = {}) {
  return tiny_config_of(kTinyModel, overrides);
}

inline Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Whether `method` has the option.
inline bool method_knows(const std::string& method, const std::string& option) {
  const std::vector<ConfigKey> keys = bind_method(method).keys;
  return std::any_of(keys.begin(), keys.end(),
                     [&](const ConfigKey& key) { return key.name == option; });
}

/// Options for `method`: it starts early, at a ratio of 5 % if it has one, and with Adam if it
/// needs Adam. Gossip gets a code with a ratio, or f16 if it refuses such codes.
inline Overrides method_overrides(const std::string& method) {
  Overrides chosen = {"compression.method=" + method};
  const auto knows = [&](const char* option) { return method_knows(method, option); };
  if (knows("compression.freeze_step"))
    return chosen + Overrides{"optimizer.kind=adamw", "compression.freeze_step=2"};
  if (knows("compression.start_after")) chosen.push_back("compression.start_after=0");
  if (method == "ecd") return chosen + Overrides{"gossip.code=fp16"};
  if (knows("gossip.code")) chosen.push_back("gossip.code=topk");
  if (knows("gossip.code") || knows("compression.ratio"))
    chosen.push_back("compression.ratio=0.05");
  return chosen;
}

/// The library's own compressors, without those that tests register.
inline std::vector<std::string> shipped_methods() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    if (entry.summary.find("test:") != 0) names.push_back(name);
  return names;
}

/// Trains without output. `out` is the run directory.
inline Summary tiny_train(const std::string& out, const Overrides& overrides = {},
                          RunDirectory::Open open = RunDirectory::Open::create) {
  return *train(tiny_config(overrides), {out, open, true});
}

/// All files of a step's checkpoint, by name.
inline std::map<std::string, std::string> checkpoint_content(const std::string& run, int64_t step) {
  std::map<std::string, std::string> files;
  const std::string folder = checkpoint_path(run + "/checkpoints", step);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = read_text(entry.path().string());
  return files;
}

/// The objects of one worker in with_replicas().
struct ReplicaTest {
  Replica& replica;
  Loader& loader;
  MemoryPool& pool;
  int64_t steps_per_epoch;

  /// Runs `count` steps from step `first` on, and starts the epochs among them.
  void steps(int64_t first, int64_t count) {
    for (int64_t step = first; step < first + count; ++step) {
      if (step % steps_per_epoch == 0) loader.start_epoch(step / steps_per_epoch);
      const double epoch = static_cast<double>(step) / static_cast<double>(steps_per_epoch);
      replica.step(step, epoch, [&] { return *loader.next(); });
    }
  }
};

/// Runs `work` in every worker of the configuration.
inline void with_replicas(const Config& config, const std::function<void(ReplicaTest&)>& work) {
  Prepared run(config);
  run.load();
  const auto in_worker = [&](Replica& replica) {
    const std::unique_ptr<Loader> loader = run.loader(Split::train, replica.rank());
    ReplicaTest test{replica, *loader, replica.context().pool,
                     loader->batches() / run.options().accumulate};
    work(test);
  };
  run_replicas(run, in_worker, run.options().link);
}

/// Every rank's weights after `steps` steps, without padding.
template <class T>
std::vector<std::vector<T>> weights_after(const Config& config, int workers, int64_t steps) {
  std::vector<std::vector<T>> weights(static_cast<size_t>(workers));
  with_replicas(config, [&](ReplicaTest& test) {
    test.steps(0, steps);
    const FlatParameters& parameters = test.replica.parameters();
    std::vector<T>& own = weights[static_cast<size_t>(test.replica.rank())];
    for (const Segment& segment : parameters.segments()) {
      const T* data = parameters.weight().template data<T>() + segment.offset;
      own.insert(own.end(), data, data + segment.numel);
    }
  });
  return weights;
}

}  // namespace wisp
