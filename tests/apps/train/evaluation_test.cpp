// What an evaluation finds does not depend on how the split is cut.
#include <gtest/gtest.h>

#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

/// Mean loss and accuracy of the weights after one step, over 10,001 samples, in f64.
std::pair<double, double> evaluate(const Overrides& cut) {
  const Config config =
      tiny_config(Overrides{"train.precision=f64", "train.backend=reference", "data.side=8",
                            "data.train_count=10001", "data.test_count=10001"} +
                  cut);
  Prepared run(config);
  run.load();
  std::pair<double, double> found;
  with_replicas(config, [&](ReplicaTest& test) {
    const TallyValues values =
        *test.replica.evaluate(*run.loader(Split::test, test.replica.rank()));
    EXPECT_EQ(values.targets(), 10001);
    if (test.replica.rank() == 0) found = {values.mean_loss(), values.value(run.metrics()[0], 0)};
  });
  return found;
}

TEST(Evaluation, WeighsByTargets) {
  const auto [loss, accuracy] = evaluate({"train.batch=10001"});
  for (const Overrides& cut : {Overrides{"train.batch=128"}, Overrides{"train.batch=10000"},
                               Overrides{"train.batch=99", "workers=3"},
                               Overrides{"train.batch=64", "workers=2", "train.accumulate=4"}}) {
    const auto [cut_loss, cut_accuracy] = evaluate(cut);
    EXPECT_NEAR(cut_loss, loss, 1e-12) << cut.front();  // f64: only the order of the sum differs
    EXPECT_EQ(cut_accuracy, accuracy) << cut.front();
  }
}

}  // namespace
}  // namespace wisp
