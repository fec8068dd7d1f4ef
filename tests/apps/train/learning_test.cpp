// Tests that the synthetic images are hard for a linear model and easy for ResNet-20.
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

double accuracy(const std::string& model) {
  const TempDir dir;
  const Config config = Config::from_text(R"(
data.name = "synthetic"
data.train_count = 4096
data.test_count = 1000
train.batch = 64
train.epochs = 5
train.eval_every = 0
optimizer.lr = 0.05
optimizer.weight_decay = 1e-4
schedule.kind = "cosine"
)" + model,
                                          "learning.toml");
  return train(config, {dir / "run", RunDirectory::Open::create, true})->score("test_accuracy");
}

TEST(SyntheticImages, AreLearnedByResNet20AndNotByALinearModel) {
  // 320 steps; chance is 0.1. The accuracy depends on rounding: eight runs of two programs and
  // three seeds reached 0.38 to 0.61.
  EXPECT_GT(accuracy("model.name = \"resnet_cifar\"\nmodel.depth = 20\n"), 0.3);
  EXPECT_LT(accuracy("model.name = \"mlp\"\nmodel.hidden = []\n"), 0.2);
}

}  // namespace
}  // namespace wisp
