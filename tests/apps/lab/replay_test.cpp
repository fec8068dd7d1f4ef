// Tests that the laboratory repeats a recorded run's layers bit for bit, with every registered
// method.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "apps/lab/codec_lab.h"
#include "apps/lab/lab_setup.h"
#include "apps/train/gradient_record.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr int kRunWorkers = 4;
constexpr int64_t kRunSteps = 6;  // an epoch and a half

std::string bytes_of(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(static_cast<const void*>(tensor.raw()));
  return {bytes, static_cast<size_t>(tensor.bytes())};
}

/// The data of an .npy file, after its header.
std::string npy_data(const std::string& path) { return read_text(path).substr(256); }

/// A run's gradients for the optimizer in all steps, by layer, and its state by name and rank.
struct Recorded {
  std::map<std::string, std::string> left;
  std::map<std::pair<std::string, int>, std::string> state;
  std::vector<std::string> layers;
};

/// Runs kRunSteps steps and records their gradients into `folder`.
Recorded record_run(const Overrides& overrides, const std::string& folder) {
  Recorded recorded;
  with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
    Replica& replica = test.replica;
    GradientRecord record(replica, {.every = 1}, folder, 0);
    record.open();
    const FlatParameters& parameters = replica.parameters();
    for (int64_t step = 0; step < kRunSteps; ++step) {
      record.begin(step);
      test.steps(step, 1);
      record.write();
      if (replica.rank() != 0) continue;
      for (const Segment& segment : parameters.segments())
        recorded.left[segment.name] += bytes_of(FlatParameters::view(parameters.grad(), segment));
    }
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    for (const SavedState& state : replica.synchronizer().state())
      recorded.state[{state.name, replica.rank()}] = bytes_of(state.tensor);
    if (replica.rank() == 0)
      for (const Segment& segment : parameters.segments()) recorded.layers.push_back(segment.name);
  });
  return recorded;
}

LabRequest request_of(const std::string& folder, const std::string& layer, const std::string& out) {
  LabRequest request;
  for (int rank = 0; rank < kRunWorkers; ++rank)
    request.inputs.push_back(concat(folder, "/rank_", rank, "/", layer, ".npy"));
  request.out = out;
  request.steps_per_epoch = 4;
  return request;
}

LabSummary replay(const Overrides& overrides, const LabRequest& request) {
  return run_lab(Config::from_text("train.epochs = 4\nschedule.kind = \"cosine\"\nthreads = 1",
                                   "lab.toml", overrides),
                 request);
}

class Replay : public testing::TestWithParam<std::string> {
 protected:
  /// The method with its early start, which also compresses vectors.
  static Overrides method() {
    return method_overrides(GetParam()) +
           Overrides{"optimizer.weight_decay=0",
                     concat("compression.policy=[{method=\"", GetParam(), "\"}]")};
  }

  /// Compares all layers of a run and their states. With `only` it compares that state alone, as
  /// the others belong to the run's units. Returns the number of compared states.
  int expect_equal(const Overrides& of_both, const Overrides& of_run,
                   const std::string& only = "") {
    int states = 0;
    const std::string folder = dir_ / concat("gradients", runs_++);
    const Recorded run =
        record_run(of_both + of_run + Overrides{concat("workers=", kRunWorkers)}, folder);
    for (const std::string& layer : run.layers) {
      SCOPED_TRACE(layer);
      const LabRequest request = request_of(folder, layer, concat(folder, "/lab/", layer));
      replay(of_both, request);
      EXPECT_TRUE(npy_data(request.out + "/mean.npy") == run.left.at(layer)) << "mean";
      for (const auto& [key, bytes] : run.state) {
        const int rank = key.second;
        const auto part = part_of_name(key.first);
        const std::string name = part ? part->whole : key.first;
        const std::string element = "/" + layer, unit = "unit/" + layer + "/";
        const bool of_unit = name.starts_with(unit);
        if (!of_unit && !name.ends_with(element)) continue;
        const std::string state =
            of_unit ? name.substr(unit.size()) : name.substr(0, name.size() - element.size());
        if (!only.empty() && state != only) continue;
        std::string file = concat(request.out, "/", state, "_", rank, ".npy");
        if (!std::filesystem::exists(file)) file = concat(request.out, "/", state, ".npy");
        if (!std::filesystem::exists(file)) {
          ADD_FAILURE() << "no file of " << state;
          continue;
        }
        EXPECT_TRUE(npy_data(file) == bytes) << state << " of rank " << rank;
        ++states;
      }
    }
    return states;
  }

  TempDir dir_;
  int runs_ = 0;
};

const Overrides kAlone = {"compression.bucket_bytes=0", "compression.encode_bytes=0"};

TEST_P(Replay, RepeatsARunBitForBit) {
  const int states = expect_equal(method(), kAlone);
  Config config;
  const auto compressor = CompressorRegistry::instance()
                              .entries()
                              .at(GetParam())
                              .make(config, {.workers = kRunWorkers, .momentum = 0.9});
  const Field field{.slices = {{0, 64}}, .numel = 64, .rows = 8};
  const bool keeps = compressor && !compressor->state({{&field, 1}, 64}, kRunWorkers).empty();
  EXPECT_TRUE(states > 0 || !keeps);
}

/// The run has no guard, as the guard decides for a whole unit.
TEST_P(Replay, RepeatsARunWhoseLayersAreOneUnit) {
  expect_equal(method() + Overrides{"compression.guard=false"}, {}, "residual");
}

/// The bound of a layer is its share of the bound for four layers, or of the whole gradient's norm.
TEST_P(Replay, ClipsAtTheRunsBound) {
  for (const std::string scope : {"layer", "model"}) {
    SCOPED_TRACE(scope);
    const Overrides clip = {"clip.norm=0.1", "clip.where=local", "clip.scope=" + scope};
    expect_equal(method() + clip, kAlone);
    NpyReader whole(dir_ / "gradients0/rank_0/whole.npy");
    EXPECT_EQ(whole.rows(), kRunSteps);
    EXPECT_GT(whole_at(whole, 0).norm, 4.0 * 0.2) << "or the bound does not bite";
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, Replay, testing::ValuesIn(shipped_methods()),
                         [](const auto& test) { return test.param; });

TEST(Replays, ClipTheMeanLayerByLayer) {
  const TempDir dir;
  const Overrides both = {"compression.method=fp16", "optimizer.weight_decay=0", "clip.norm=0.1",
                          "clip.scope=layer"};
  const Recorded run = record_run(both + Overrides{"workers=4"}, dir / "run");
  const LabRequest request = request_of(dir / "run", "layer1.weight", dir / "lab");
  const LabSummary summary = replay(both, request);
  EXPECT_TRUE(npy_data(dir / "lab/mean.npy") == run.left.at("layer1.weight"));
  ASSERT_EQ(summary.remarks.size(), 1u);
  EXPECT_EQ(summary.remarks[0], "clip.norm = 0.1 bounds the mean gradient");
}

TEST(Replays, RefuseWhatALayerDoesNotTell) {
  const TempDir dir;
  record_run({"workers=4", "train.max_steps=6"}, dir / "run");
  const LabRequest request = request_of(dir / "run", "layer0.weight", dir / "lab");
  const auto error = [&](const Overrides& overrides) {
    return error_of([&] { replay(overrides, request); });
  };
  EXPECT_NE(error({"clip.norm=1"})
                .find("clip.norm clips the mean gradient of all layers (74002 elements)"),
            std::string::npos);
  EXPECT_NE(error({"compression.method=variance", "train.accumulate=2", "train.batch=8"})
                .find("needs the gradient of each micro-batch"),
            std::string::npos);
  EXPECT_NE(error({"device=cpu"}).find("device has no place here"), std::string::npos);
  for (const auto& [name, entry] : SynchronizerRegistry::instance().entries())
    EXPECT_NE(error({"compression.method=" + name}).find("exchanges weights"), std::string::npos)
        << name;
  std::filesystem::remove(dir / "run/rank_1/whole.npy");
  const LabSummary summary = replay({"clip.norm=1", "clip.where=local"}, request);
  EXPECT_NE(summary.remarks.back().find("as if it were the whole model"), std::string::npos);
  std::filesystem::remove(dir / "run/rank_0/whole.npy");
  std::filesystem::copy(dir / "run/rank_0/steps.npy", dir / "run/rank_0/whole.npy");
  EXPECT_NE(error({"clip.norm=1"}).find("whole.npy: has 6 rows of ()"), std::string::npos);
}

}  // namespace
}  // namespace wisp
