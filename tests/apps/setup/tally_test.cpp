// Tests of the averages of loss and metrics around skipped steps, on the CPU and a device.
#include "apps/setup/tally.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/ops.h"
#include "core/train/norm.h"
#include "layers/linear.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using nlohmann::json;

/// A linear model whose loss is NaN in a step of one rank. Its output, which the metrics read,
/// stays finite.
class Skipping final : public Model {
 public:
  Skipping(int64_t step, int64_t rank, const Facts& facts)
      : step_(step), rank_(rank), layer_(facts.inputs[0].sample.numel(), facts.classes) {
    child("layer", layer_);
  }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    const Tensor& input = batch.inputs[0];
    const int64_t rows = input.shape()[0];
    const Variable logits = layer_(reshape(Variable(context, input), {rows, input.numel() / rows}));
    Variable judged = logits;
    if (context.training && context.step == step_ && context.rank == rank_) {
      const Tensor nan = context.zeros(logits.shape(), logits.value().dtype());
      scale(context.stream, nan, std::nan(""));
      judged = add(logits, Variable(context, nan));
    }
    return {cross_entropy(judged, batch.targets), logits};
  }

 private:
  const int64_t step_, rank_;
  Linear layer_;
};

const ModelRegistration registration("skipping", "test: a step is skipped",
                                     [](Config& config, const Facts& facts) {
                                       int64_t step = -1, rank = 0;
                                       config.bind("model.skip", step, "the step with a NaN");
                                       config.bind("model.rank", rank, "and its rank");
                                       return std::make_unique<Skipping>(step, rank, facts);
                                     });

Config skipping_config(const Overrides& overrides) {
  return tiny_config_of("model.name = \"skipping\"", overrides);
}

/// The sums of the first four steps, gathered after each step or at the end. The weights stay as
/// they are.
std::vector<TallyValues> tallies(const Overrides& overrides, bool each) {
  std::vector<TallyValues> found;
  const Config config = skipping_config(overrides + Overrides{"optimizer.lr=1e-30", "workers=2"});
  with_replicas(config, [&](ReplicaTest& test) {
    for (int64_t step = 0; step < 4; ++step) {
      test.steps(step, 1);
      if (!each && step < 3) continue;
      const TallyValues values = test.replica.tally();
      if (test.replica.rank() == 0) found.push_back(values);
    }
  });
  return found;
}

TEST(Tally, LeavesOutASkippedStepOnAllRanks) {
  for (const Overrides& at :
       {Overrides{}, Overrides{"device=emulated"}, Overrides{"train.accumulate=2"},
        Overrides{"compression.method=local_sgd"}}) {
    SCOPED_TRACE(testing::PrintToString(at));
    const std::vector<TallyValues> steps = tallies(at, true);
    ASSERT_EQ(steps.size(), 4u);
    for (const int64_t skipped : {0, 1, 3}) {
      TallyValues expected;
      for (size_t step = 0; step < 4; ++step)
        if (std::cmp_not_equal(step, skipped)) expected += steps[step];
      const TallyValues found =
          tallies(at + Overrides{concat("model.skip=", skipped), "model.rank=1"}, false).at(0);
      EXPECT_EQ(found.targets(), 96);
      ASSERT_EQ(found.sums.size(), 4u);
      EXPECT_NEAR(found.sums[0], expected.sums[0], 1e-9) << "added in another order";
      for (size_t i = 1; i < 4; ++i) EXPECT_EQ(found.sums[i], expected.sums[i]) << i;
    }
    const TallyValues alone = tallies(at + Overrides{"model.skip=2"}, true).at(2);
    EXPECT_FALSE(alone.any());
    EXPECT_EQ(alone.sums, std::vector<double>(4, 0.0));
  }
}

std::vector<json> rows_without_times(const std::string& run) {
  std::vector<json> rows;
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    json row = json::parse(line);
    for (const char* time : {"seconds", "images_per_s", "loader_ms", "compute_ms", "encode_ms",
                             "wait_ms", "wire_ms", "decode_ms"})
      row.erase(time);
    rows.push_back(row);
  }
  return rows;
}

TEST(Tally, ARunThatResumesAroundASkippedStepHasTheSameAverages) {
  const TempDir dir;
  for (const char* every : {"train.log_every=1", "train.log_every=3"}) {
    const Overrides run{every, "train.epochs=2", "model.skip=1"};
    const std::string whole = dir / every;
    EXPECT_EQ(train(skipping_config(run), {whole, RunDirectory::Open::create, true})->skipped, 1);
    const std::vector<json> rows = rows_without_times(whole);
    if (every == std::string("train.log_every=1")) {
      EXPECT_TRUE(rows.at(1).at("loss").is_null()) << "there is no other step";
      EXPECT_TRUE(rows.at(1).at("accuracy").is_null());
    }
    for (const int64_t last : {1, 2, 3}) {
      const std::string cut = concat(whole, "-", last);
      int64_t polls = 0;
      EXPECT_FALSE(train(skipping_config(run),
                         {cut, RunDirectory::Open::create, true, [&] { return ++polls >= last; }}));
      train(skipping_config(run), {cut, RunDirectory::Open::resume, true});
      EXPECT_EQ(rows_without_times(cut), rows) << cut;
    }
  }
}

}  // namespace
}  // namespace wisp
