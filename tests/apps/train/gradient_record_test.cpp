#include "apps/train/gradient_record.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "apps/lab/codec_lab.h"
#include "core/io/checkpoint.h"
#include "data/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr const char* kLayer = "layer0.weight";
const Overrides kPlain = {"workers=2", "optimizer.weight_decay=0", "train.max_steps=8"};

std::vector<float> rows_of(const std::string& path) {
  NpyReader reader(path);
  std::vector<float> all(static_cast<size_t>(reader.rows() * reader.row_shape().numel()));
  for (int64_t row = 0; row < reader.rows(); ++row)
    reader.read(row, all.data() + row * reader.row_shape().numel());
  return all;
}

/// The gradients for the optimizer of rank 0 in all steps of a run, by layer.
std::map<std::string, std::vector<float>> applied(const Overrides& overrides, int64_t steps) {
  std::map<std::string, std::vector<float>> all;
  with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
    for (int64_t step = 0; step < steps; ++step) {
      test.steps(step, 1);
      if (test.replica.rank() != 0) continue;
      const FlatParameters& parameters = test.replica.parameters();
      for (const Segment& segment : parameters.segments()) {
        const float* values = parameters.grad().data<float>() + segment.offset;
        std::vector<float>& rows = all[segment.name];
        rows.insert(rows.end(), values, values + segment.numel);
      }
    }
  });
  return all;
}

/// The method without a policy, and with a policy that compresses vectors too.
std::vector<Overrides> with_rules(const std::string& method) {
  const Overrides plain = method_overrides(method);
  return {plain, plain + Overrides{concat("compression.policy=[{method=\"", method, "\"}]")}};
}

/// The elements of a state in a rank's checkpoint after 8 steps; empty if it has no such state.
std::vector<float> state_of(const std::string& run, int rank, const std::string& name) {
  const CheckpointReader file(
      concat(checkpoint_path(run + "/checkpoints", 8), "/rank_", rank, ".safetensors"));
  if (!file.has(name)) return {};
  const Tensor tensor(Shape(std::span<const int64_t>(file.entry(name).extents)), DType::f32);
  file.read(name, tensor);
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

/// The laboratory gives the optimizer's gradients in each step and the residuals at the end.
/// Vectors and matrices follow the run's policy.
TEST(GradientRecord, GivesTheLaboratoryWhatTheRunApplied) {
  std::set<std::string> compared;
  for (const std::string method : {"none", "topk", "random_k", "dgc"}) {
    for (const Overrides& policy : with_rules(method)) {
      const TempDir dir;
      tiny_train(dir / "run",
                 kPlain + policy + Overrides{"record.gradients={ every = 1, layers = \"*\" }"});
      const auto results = applied(kPlain + policy, 8);
      for (const std::string layer : {"layer0.weight", "layer0.bias"}) {
        SCOPED_TRACE(concat(method, ", ", policy.back(), ", ", layer));
        LabRequest request;
        for (const int rank : {0, 1})
          request.inputs.push_back(concat(dir / "run/gradients/rank_", rank, "/", layer, ".npy"));
        request.out = dir / ("lab/" + layer);
        const LabSummary summary = run_lab(
            Config::from_text("", "lab.toml", policy + Overrides{"optimizer.weight_decay=0"}),
            request);
        EXPECT_EQ(rows_of(request.out + "/mean.npy"), results.at(layer));
        for (const int rank : {0, 1}) {
          const std::vector<float> residual = state_of(dir / "run", rank, "residual/" + layer);
          const std::string file = concat(request.out, "/residual_", rank, ".npy");
          EXPECT_EQ(residual.empty(), summary.compressed == 0);
          ASSERT_EQ(residual.empty(), !std::filesystem::exists(file));
          if (residual.empty()) continue;
          EXPECT_EQ(rows_of(file), residual);
          compared.insert(method + " " + layer);
        }
      }
    }
  }
  EXPECT_EQ(compared.size(), 6u) << "two layers by three methods with residuals";
}

TEST(GradientRecord, ChangesNoBitOfTheRun) {
  const TempDir dir;
  const Overrides overrides = kPlain + method_overrides("dgc");
  tiny_train(dir / "plain", overrides);
  tiny_train(dir / "recorded", overrides + Overrides{"record.gradients.every=3"});
  EXPECT_EQ(checkpoint_content(dir / "plain", 8), checkpoint_content(dir / "recorded", 8));
  EXPECT_FALSE(std::filesystem::exists(dir / "plain/gradients"));
}

TEST(GradientRecord, TakesTheStepsAndLayersThatWereAskedFor) {
  const TempDir dir;
  const std::string out = dir / "elsewhere";
  tiny_train(dir / "run", kPlain + Overrides{concat("record.gradients={ every = 3, layers = "
                                                    "\"*.weight\", out = \"",
                                                    out, "\" }")});
  for (const int rank : {0, 1}) {
    const std::string folder = concat(out, "/rank_", rank, "/");
    EXPECT_EQ(rows_of(folder + "steps.npy"), std::vector<float>({0, 3, 6}));
    NpyReader layer(folder + kLayer + ".npy");
    EXPECT_EQ(layer.rows(), 3);
    EXPECT_EQ(layer.row_shape()[0], 24);
    EXPECT_FALSE(std::filesystem::exists(folder + "layer0.bias.npy"));
  }
  EXPECT_NE(rows_of(concat(out, "/rank_0/", kLayer, ".npy")),
            rows_of(concat(out, "/rank_1/", kLayer, ".npy")));
}

TEST(GradientRecord, IsOfTheWorkersOwnMeanLoss) {
  const TempDir dir;
  const Overrides one_batch = {"train.max_steps=1", "record.gradients.every=1",
                               "data.augment=false"};
  tiny_train(dir / "two", one_batch + Overrides{"workers=2"});
  tiny_train(dir / "one", one_batch + Overrides{"workers=1"});
  const std::string file = concat("/", kLayer, ".npy");
  const auto whole = rows_of(dir / ("one/gradients/rank_0" + file));
  const auto a = rows_of(dir / ("two/gradients/rank_0" + file));
  const auto b = rows_of(dir / ("two/gradients/rank_1" + file));
  for (size_t i = 0; i < whole.size(); ++i)
    ASSERT_NEAR((a[i] + b[i]) / 2, whole[i], 1e-5) << i;  // sums in another order
  for (const std::string method : {"choco", "local_sgd"}) {
    tiny_train(dir / method, one_batch + Overrides{"workers=2", "compression.method=" + method});
    EXPECT_EQ(rows_of(dir / (method + "/gradients/rank_0" + file)), a) << method;
  }
}

TEST(GradientRecord, AResumedRunLeavesTheFilesOfAnUndisturbedOne) {
  const TempDir dir;
  const Overrides overrides = kPlain + Overrides{"record.gradients.every=2",
                                                 "checkpoint.every_steps=3", "checkpoint.keep=0"};
  const auto files = [&](const std::string& run) {
    std::map<std::string, std::string> content;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run + "/gradients")) {
      if (entry.is_regular_file())
        content[entry.path().lexically_relative(run)] = read_text(entry.path());
    }
    return content;
  };
  tiny_train(dir / "run", overrides);
  const auto undisturbed = files(dir / "run");
  // as if killed in the middle of a row, between a step and its checkpoint
  for (const int64_t step : checkpoint_steps(dir / "run/checkpoints")) {
    if (step > 3) std::filesystem::remove_all(checkpoint_path(dir / "run/checkpoints", step));
  }
  const std::string file = concat("run/gradients/rank_0/", kLayer, ".npy");
  dir.write(file, read_text(dir / file) + "half a row");
  tiny_train(dir / "run", overrides, RunDirectory::Open::resume);
  EXPECT_EQ(files(dir / "run"), undisturbed);
  EXPECT_EQ(rows_of(dir / "run/gradients/rank_1/steps.npy"), std::vector<float>({0, 2, 4, 6}));

  tiny_train(dir / "run", overrides, RunDirectory::Open::overwrite);
  EXPECT_EQ(files(dir / "run"), undisturbed);
}

TEST(GradientRecord, LeavesOutSkippedSteps) {
  const TempDir dir;
  const Summary summary =
      tiny_train(dir / "run", kPlain + Overrides{"optimizer.lr=1e30", "record.gradients.every=1"});
  ASSERT_GT(summary.skipped, 0);
  EXPECT_EQ(NpyReader(dir / "run/gradients/rank_0/steps.npy").rows(),
            summary.steps - summary.skipped);
}

TEST(GradientRecord, RefusesWhatDoesNotFit) {
  const TempDir dir;
  const std::string error = error_of([&] {
    tiny_train(dir / "run", Overrides{"record.gradients.every=1", "record.gradients.layers=conv*"});
  });
  EXPECT_NE(error.find("no trained parameter's name fits 'conv*'"), std::string::npos) << error;
  tiny_train(dir / "run", kPlain + Overrides{"record.gradients.every=1", "train.max_steps=4",
                                             "record.gradients.layers=*.bias"});
  EXPECT_NE(error_of([&] {
              tiny_train(dir / "run", kPlain + Overrides{"record.gradients.every=1"},
                         RunDirectory::Open::resume);
            }).find("must record the same layers"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
