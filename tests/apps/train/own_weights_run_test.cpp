// Tests of runs whose workers have their own weights: gossip and local SGD in `wisp train`.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/interchange/exchange.h"
#include "apps/run/checkpoints.h"
#include "core/io/checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;
using Weights = std::vector<std::vector<float>>;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Overrides gossip(const std::string& method, const std::string& code = "none") {
  return {"workers=4", "compression.method=" + method, "gossip.code=" + code};
}

const Overrides kChoco = gossip("choco", "topk") + Overrides{"compression.ratio=0.05"};
const Overrides kLocal = {"workers=4", "compression.method=local_sgd", "local_sgd.period=3"};

class OwnWeightsRun : public testing::TestWithParam<std::pair<const char*, Overrides>> {};

TEST_P(OwnWeightsRun, LeavesTheSameBitsHoweverTheStepIsScheduled) {
  const Overrides& method = GetParam().second;
  const auto weights = [&](const Overrides& more = {}) {
    return weights_after<float>(tiny_config(method + more), 4, 7);
  };
  const Weights expected = weights();
  EXPECT_NE(expected[0], expected[1]) << "workers have weights of their own";
  EXPECT_EQ(weights(), expected) << "repeated";
  EXPECT_EQ(weights({"compression.overlap=false"}), expected) << "inline";
  EXPECT_EQ(weights({"turns=true"}), expected) << "turns";
  EXPECT_EQ(weights({"data.threads=0"}), expected) << "no loader threads";
  EXPECT_EQ(weights({"compression.bucket_bytes=1000000"}), expected) << "one bucket";
}

INSTANTIATE_TEST_SUITE_P(
    Run, OwnWeightsRun,
    testing::Values(std::pair{"dpsgd", gossip("dpsgd") + Overrides{"gossip.graph=complete"}},
                    std::pair{"dcd", gossip("dcd", "fp16")},
                    std::pair{"ecd", gossip("ecd") + Overrides{"gossip.graph=0-1,1-2,2-3"}},
                    std::pair{"choco", kChoco}, std::pair{"local_sgd", kLocal}),
    [](const auto& parameter) { return std::string(parameter.param.first); });

TEST(OwnWeightsRun, LocalSgdOfPeriodOneIsGradientAveraging) {
  const Overrides plain = {"workers=4", "optimizer.momentum=0"};
  const Weights averaged = weights_after<float>(tiny_config(plain), 4, 6);
  const Weights local = weights_after<float>(
      tiny_config(plain + Overrides{"compression.method=local_sgd", "local_sgd.period=1"}), 4, 6);
  for (size_t i = 0; i < averaged[0].size(); ++i)
    ASSERT_NEAR(local[2][i], averaged[2][i], 1e-5) << "roundings of 6 steps";
}

/// Evaluation and export both take the mean of the workers' weights.
TEST(OwnWeightsRun, EvaluatesAndExportsTheMean) {
  const TempDir dir;
  for (const Overrides& method : {kChoco, kLocal, kChoco + Overrides{"ema.decay=0.5"}}) {
    const Overrides few = method + Overrides{"train.max_steps=7"};
    const double accuracy =
        train(tiny_config(few), {dir / "run", Open::overwrite, true})->score("test_accuracy");
    export_run(dir / "run", dir / "mean.safetensors", {});
    import_run(tiny_config({"workers=4"}), dir / "mean.safetensors", dir / "one", Open::overwrite);
    EXPECT_EQ(evaluate_run(dir / "one", {}).test.metrics[0], accuracy);
    EXPECT_EQ(evaluate_run(dir / "run", {}).test.metrics[0], accuracy);
    EXPECT_EQ(evaluate_run(dir / "one", {}).test.loss, evaluate_run(dir / "run", {}).test.loss);
  }
}

TEST(OwnWeightsRun, EvaluatesWithTheMeanOfTheRunningStatistics) {
  const TempDir dir;
  const Config resnet =
      tiny_config_of("model.name = \"resnet_cifar\"\nmodel.depth = 8",
                     kLocal + Overrides{"data.train_count=64", "data.side=8", "train.max_steps=2"});
  train(resnet, {dir / "run", Open::create, true});
  export_run(dir / "run", dir / "mean.safetensors", {});
  const std::string folder = checkpoint_path(dir / "run/checkpoints", 2);
  const CheckpointReader mean(dir / "mean.safetensors");
  MemoryPool pool;
  const auto read = [&](const CheckpointReader& file, const std::string& name) {
    Tensor tensor({16}, DType::f32, pool, 0);
    file.read(name, tensor);
    return std::vector<float>(tensor.data<float>(), tensor.data<float>() + 16);
  };
  std::vector<float> sum(16, 0.0f);
  std::vector<float> first;
  for (int rank = 0; rank < 4; ++rank) {
    const CheckpointReader file(concat(folder, "/rank_", rank, ".safetensors"));
    first = read(file, "buffer/norm.running_mean");
    for (size_t i = 0; i < 16; ++i) sum[i] += first[i];
  }
  const std::vector<float> exported = read(mean, "bn1.running_mean");
  EXPECT_NE(exported, first);
  for (size_t i = 0; i < 16; ++i) EXPECT_FLOAT_EQ(exported[i], sum[i] / 4.0f);
}

TEST(OwnWeightsRun, GoesOnWithTheWorkersAndTheGraphItHad) {
  const TempDir dir;
  tiny_train(dir / "run", kChoco + Overrides{"train.max_steps=3"});
  const auto resume = [&](const Overrides& other) {
    return error_of([&] {
      tiny_train(dir / "run", kChoco + Overrides{"train.max_steps=6"} + other, Open::resume);
    });
  };
  std::string error = resume({"workers=2"});
  EXPECT_NE(error.find("separate weights of 4 workers"), std::string::npos) << error;
  EXPECT_NE(error.find("resume with workers=4"), std::string::npos) << error;
  error = resume({"gossip.graph=complete"});
  EXPECT_NE(error.find("another gossip graph"), std::string::npos) << error;
  EXPECT_EQ(resume({}), "no error");
}

TEST(OwnWeightsRun, MeasuresHowFarTheWorkersAreApart) {
  const TempDir dir;
  tiny_train(dir / "run", kChoco + Overrides{"train.distance_every=2", "train.max_steps=5"});
  std::istringstream metrics(read_text(dir / "run/metrics.jsonl"));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(metrics, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row.at("type") == "consensus") steps.push_back(row.at("step"));
    if (row.at("type") == "step") continue;
    EXPECT_GT(row.at("consensus_distance").get<double>(), 0.0) << line;
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4}));
}

/// Each distance takes a dense all-reduce of the weights and one of a sum. Both count for no step.
TEST(OwnWeightsRun, CountsWhatMeasuringSendsUnderANameOfItsOwn) {
  const TempDir dir;
  const auto run = [&](const std::string& every) {
    const Overrides steps = {"train.max_steps=5", "train.distance_every=" + every};
    tiny_train(dir / every, kChoco + steps);
    return Summary::from_json(dir / every + "/summary.json");
  };
  const Summary never = run("-1"), once = run("0"), often = run("1");
  EXPECT_EQ(read_text(dir / "-1/metrics.jsonl").find("consensus"), std::string::npos);
  const double distance = 2.0 * 3.0 / 4.0 * (never.bytes_raw + 8.0);
  const double padding = 200.0;  // padding of the arena in seven distances or fewer
  EXPECT_NEAR(once.bytes_other - never.bytes_other, distance * 2.0 / 5.0, padding) << "two epochs";
  EXPECT_NEAR(often.bytes_other - never.bytes_other, distance * 7.0 / 5.0, padding);
  EXPECT_GT(never.bytes_other, 0.0) << "the mean that is evaluated, metrics";
  EXPECT_EQ(never.bytes_distance, 0.0);
  EXPECT_NEAR(once.bytes_distance, distance * 2.0 / 5.0, padding);
  EXPECT_NEAR(often.bytes_distance, distance * 7.0 / 5.0, padding);
  for (const Summary& other : {once, often}) {
    EXPECT_EQ(other.bytes_sent, never.bytes_sent);
    EXPECT_EQ(other.score("test_accuracy"), never.score("test_accuracy"));
  }
}

TEST(OwnWeightsRun, TakesCodesFromPolicies) {
  const TempDir dir;
  const auto config = [](const std::string& rule) {
    return Config::from_text(
        tiny_text(kTinyModel) + "workers = 4\ncompression.method = \"choco\"\n" +
            "gossip.code = \"topk\"\ncompression.ratio = 0.05\n[[compression.policy]]\n" +
            "name = \"*.bias\"\nmethod = \"" + rule + "\"\n",
        "policy.toml");
  };
  with_replicas(config("fp16"), [](ReplicaTest& test) {
    EXPECT_EQ(test.replica.methods(), "choco, topk, fp16");
    test.steps(0, 2);
  });
  const std::string error = error_of([&] { Prepared run(config("dgc")); });
  EXPECT_NE(error.find("'dgc', which is no code"), std::string::npos) << error;
}

TEST(OwnWeightsRun, ARuleThatDecidesNothingChangesNothing) {
  const auto remarks = [](const std::string& method, const std::string& code) {
    const Config config = Config::from_text(
        tiny_text(kTinyModel) + "workers = 4\ncompression.method = \"" + method +
            "\"\ngossip.code = \"fp16\"\n[[compression.policy]]\nname = \"nothing\"\nmethod = \"" +
            code + "\"\n",
        "policy.toml");
    return joined(Prepared(config).exchange().remarks);
  };
  for (const std::string& said : {remarks("dcd", "random_k"), remarks("choco", "topk")})
    EXPECT_NE(said.find("this rule of compression.policy decides nothing"), std::string::npos);
  EXPECT_NE(remarks("choco", "topk").find("choco works with any code"), std::string::npos);
  EXPECT_EQ(remarks("choco", "random_k").find("choco random_k"), std::string::npos);
}

/// A code is judged by the share that it sends, even if it ignores the ratio or stays below it.
TEST(OwnWeightsRun, JudgesACodeByWhatItKeeps) {
  const auto remarks = [](const Overrides& keys) {
    return joined(Prepared(tiny_config(keys)).exchange().remarks);
  };
  const Overrides block = {"compression.block=rank", "compression.rank=1"};
  const std::vector<LayerPlan> layers = Prepared(tiny_config()).exchange().layers;
  const LayerPlan& hidden = *std::find_if(layers.begin(), layers.end(), [](const LayerPlan& layer) {
    return layer.name == "layer0.weight";
  });
  const double share = static_cast<double>(hidden.shape[0] + hidden.numel / hidden.shape[0]) /
                       static_cast<double>(hidden.numel);
  EXPECT_NE(error_of([&] {
              Prepared run(tiny_config(gossip("dcd", "random_block") + block));
            }).find(concat("scaled by up to ", static_cast<float>(1.0 / share), " ")),
            std::string::npos);
  EXPECT_NE(remarks(gossip("choco", "random_block") + block)
                .find(concat("this run takes ", static_cast<float>(0.5 * share))),
            std::string::npos);
  const Overrides whole = {"compression.block=rank", "compression.rank=24"};
  EXPECT_NE(remarks(gossip("dcd", "random_block") + whole).find("dcd's theory"), std::string::npos);
  EXPECT_NE(remarks(gossip("choco", "threshold")).find("choco works with any code"),
            std::string::npos);
}

TEST(OwnWeightsRun, RefusesWhatItCannotDo) {
  const auto error = [](const Overrides& keys) {
    return error_of([&] { Prepared run(tiny_config(keys)); });
  };
  EXPECT_NE(error(kLocal + Overrides{"train.precision=f64", "train.backend=reference"})
                .find("local_sgd works on f32 weights"),
            std::string::npos);
  EXPECT_NE(error(kLocal + Overrides{"gossip.code=topk"}).find("gossip.code"), std::string::npos);
  EXPECT_NE(error(gossip("choco") + Overrides{"gossip.consensus_step=1.5"})
                .find("gossip.consensus_step is 1.5"),
            std::string::npos);
  EXPECT_NE(error({"compression.method=gossip"}).find("choco, dcd, dgc"), std::string::npos);
}

/// Every key of a method or of the exchange works, or the error names it and the method.
TEST(OwnWeightsRun, NoKeyIsIgnored) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused = {
      {"compression.probe_every=5", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.feedback=ef", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.residual=update", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.momentum_correction=true", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.ratio=0.5", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.warmup=list", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.levels=3", {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}},
      {"compression.scope=bucket", {"local_sgd"}},
      {"compression.guard=false", {"local_sgd"}},
      {"gossip.graph=complete", {"local_sgd"}},
      {"gossip.code=fp16", {"local_sgd"}},
      {"gossip.consensus_step=0.5", {"dpsgd", "dcd", "ecd", "local_sgd"}},
      {"local_sgd.period=2", {"dpsgd", "dcd", "ecd", "choco"}},
      {"local_sgd.average_momentum=true", {"dpsgd", "dcd", "ecd", "choco"}},
      {"record.gradients.every=1", {}},
      {"compression.overlap=false", {}},
      {"compression.encode_bytes=64", {}},
      {"train.distance_every=1", {}},
      {"clip.norm=0.5", {}}};
  for (const auto& [key, methods] : refused) {
    const std::string& set = key;  // clang's lambdas capture no structured bindings
    for (const std::string method : {"dpsgd", "dcd", "ecd", "choco", "local_sgd"}) {
      const std::string said = error_of([&] {
        Prepared run(tiny_config({"workers=4", "compression.method=" + method, set}));
      });
      if (std::count(methods.begin(), methods.end(), method) == 0) {
        EXPECT_EQ(said, "no error") << method << ", " << key;
        continue;
      }
      EXPECT_NE(said.find(key.substr(0, key.find('='))), std::string::npos) << said;
      EXPECT_NE(said.find(method), std::string::npos) << said;
    }
  }
}

TEST(OwnWeightsRun, LocalSgdSaysThatBucketsMeanNothing) {
  const Prepared run(tiny_config(kLocal));  // buckets of 16384 bytes
  const std::vector<std::string>& remarks = run.exchange().remarks;
  EXPECT_TRUE(std::any_of(remarks.begin(), remarks.end(), [](const std::string& remark) {
    return remark.find("compression.bucket_bytes = 16384") != std::string::npos;
  }));
}

}  // namespace
}  // namespace wisp
