// Tests of moving averages of the weights in whole runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>

#include "core/io/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

/// The config of a network with batch norm, which has buffers.
Config resnet(const Overrides& overrides) {
  return Config::from_text(
      "threads = 1\nworkers = 2\nmodel.depth = 8\ndata.name = \"synthetic\"\n"
      "data.train_count = 64\ndata.test_count = 8\ntrain.batch = 16\ntrain.epochs = 2\n"
      "optimizer.lr = 0.02\n",
      "resnet.toml", overrides);
}

Config averaged(const Overrides& overrides = {}) {
  return resnet(Overrides{"ema.decay=0.6"} + overrides);
}

using Named = std::map<std::string, Tensor>;

Named state_of(Replica& replica) {
  Named state;
  for (const SavedState& saved : replica.state()) state[saved.name] = saved.tensor;
  return state;
}

TEST(Averages, AreWhatAnEvaluationSees) {
  // a replica with these averages as its weights and statistics has the same evaluation
  double loss[2] = {}, plain_loss = 0.0;
  std::vector<Named> states(2);
  Prepared run(averaged());
  run.load();
  const auto evaluate = [&](Replica& replica) {
    return replica.evaluate(*run.loader(Split::test, replica.rank()))->mean_loss();
  };
  with_replicas(averaged(), [&](ReplicaTest& test) {
    test.steps(0, 4);
    const double seen = evaluate(test.replica);
    Named& state = states[static_cast<size_t>(test.replica.rank())];
    for (const auto& [name, tensor] : state_of(test.replica)) {
      Tensor copy(tensor.shape(), tensor.dtype());
      std::memcpy(copy.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
      state[name] = copy;
    }
    if (test.replica.rank() == 0) loss[0] = seen;
  });
  with_replicas(resnet({}), [&](ReplicaTest& test) {
    test.steps(0, 4);
    const double trained = evaluate(test.replica);
    const Named& from = states[static_cast<size_t>(test.replica.rank())];
    for (auto& [name, tensor] : state_of(test.replica)) {
      const size_t slash = name.find('/');
      const std::string kind = name.substr(0, slash);
      if (kind != "weight" && kind != "buffer") continue;
      const std::string source = (kind == "weight" ? "ema" : "ema_buffer") + name.substr(slash);
      std::memcpy(tensor.raw(), from.at(source).raw(), static_cast<size_t>(tensor.bytes()));
    }
    const double seen = evaluate(test.replica);
    if (test.replica.rank() == 0) {
      loss[1] = seen;
      plain_loss = trained;
    }
  });
  EXPECT_EQ(loss[0], loss[1]);
  EXPECT_NE(loss[0], plain_loss);
}

TEST(Averages, DoNotTouchTheTraining) {
  Prepared run(averaged());
  run.load();
  const auto train = [&](const Config& config, bool evaluate) {
    std::vector<std::vector<float>> weights(2);
    with_replicas(config, [&](ReplicaTest& test) {
      const std::unique_ptr<Loader> images = run.loader(Split::test, test.replica.rank());
      test.steps(0, 2);
      if (evaluate) test.replica.evaluate(*images);
      test.steps(2, 2);
      for (const auto& [name, tensor] : state_of(test.replica)) {
        if (name.rfind("ema", 0) == 0 || tensor.dtype() != DType::f32) continue;
        std::vector<float>& own = weights[static_cast<size_t>(test.replica.rank())];
        own.insert(own.end(), tensor.data<float>(), tensor.data<float>() + tensor.numel());
      }
    });
    return weights;
  };
  const auto expected = train(resnet({}), false);
  EXPECT_EQ(train(averaged(), false), expected);
  EXPECT_EQ(train(averaged(), true), expected);
}

TEST(Averages, AreResumedExactlyAndEvaluatedFromDisk) {
  const TempDir dir;
  train(averaged(), {dir / "whole", Open::create, true});  // 8 steps
  std::atomic<int> asked{0};
  const auto stop = [&] { return ++asked > 6; };  // stops after some steps
  EXPECT_FALSE(train(averaged(), {dir / "cut", Open::create, true, stop}));
  EXPECT_TRUE(train(averaged(), {dir / "cut", Open::resume, true}));
  EXPECT_TRUE(checkpoint_content(dir / "cut", 8) == checkpoint_content(dir / "whole", 8));
  const std::string checkpoint = checkpoint_path(dir / "whole/checkpoints", 8);
  EXPECT_TRUE(CheckpointReader(checkpoint + "/shared.safetensors").has("ema/conv.weight"));
  EXPECT_TRUE(
      CheckpointReader(checkpoint + "/rank_1.safetensors").has("ema_buffer/norm.running_mean"));
  EXPECT_EQ(evaluate_run(dir / "whole", {}).test.metrics[0],
            Summary::from_json(dir / "whole/summary.json").score("test_accuracy"));
}

TEST(Averages, OfAllRanksAreTheSameBits) {
  std::vector<std::vector<float>> averages(2);
  with_replicas(averaged(), [&](ReplicaTest& test) {
    test.steps(0, 4);
    for (const auto& [name, tensor] : state_of(test.replica)) {
      if (name.rfind("ema/", 0) != 0) continue;
      std::vector<float>& own = averages[static_cast<size_t>(test.replica.rank())];
      own.insert(own.end(), tensor.data<float>(), tensor.data<float>() + tensor.numel());
    }
  });
  EXPECT_FALSE(averages[0].empty());
  EXPECT_EQ(averages[0], averages[1]);
}

}  // namespace
}  // namespace wisp
