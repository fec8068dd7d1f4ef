// Tests that the results of an evaluation do not depend on the cut of the split.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/text/vocabulary.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

/// Drawn images. Image 3 of each split cannot be read.
class Scratched final : public ImageSource {
 public:
  using ImageSource::ImageSource;
  Splits open(DType compute) const override {
    Splits whole = ImageSource::open(compute);
    return {std::make_unique<WithAScratch>(std::move(whole.train)), nullptr,
            std::make_unique<WithAScratch>(std::move(whole.test))};
  }

 private:
  class WithAScratch final : public Examples {
   public:
    explicit WithAScratch(std::unique_ptr<Examples> whole) : whole_(std::move(whole)) {}
    int64_t count() const override { return whole_->count(); }
    std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
      return whole_->epoch(epoch, deal);
    }
    void shape(const Piece& piece, Batch& batch) const override { whole_->shape(piece, batch); }
    std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override {
      whole_->fill(piece, row, batch);
      if (piece.rows[static_cast<size_t>(row)] != 3) return {};
      batch.targets.data<int32_t>()[row] = -1;
      return "image 3: no such file";
    }

   private:
    const std::unique_ptr<Examples> whole_;
  };

  Shape sample() const override { return {4, 4, 3}; }
  Normalization normalization() const override { return random_normalization(); }
  int classes() const override { return 10; }
  ImageSet load(Split) const override { return random_images({64, 4, 4, 3}); }
};

const DataRegistration scratched_images("scratched", "test: an image that cannot be read",
                                        [](Config& config) {
                                          return std::make_unique<Scratched>(config);
                                        });

TEST(Evaluation, DamagedSamplesAreToldAndCountForNothing) {
  const TempDir dir;
  testing::internal::CaptureStderr();
  train(Config::from_text("threads = 1\nworkers = 2\nmodel = { name = \"mlp\", hidden = [8] }\n"
                          "data.name = \"scratched\"\ntrain = { batch = 16, epochs = 2 }\n",
                          "scratched.toml"),
        {dir / "run", RunDirectory::Open::create, /*quiet=*/true});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("2 damaged samples were left out so far, for example image 3: no such "
                      "file\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("4 damaged samples were left out so far"), std::string::npos) << said;
  EXPECT_EQ(evaluate_run(dir / "run", {}).test.targets, 63) << "the mean is over the 63 of 64";
}

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
    EXPECT_NEAR(cut_loss, loss, 1e-12) << cut.front();  // f64 sums in another order
    EXPECT_EQ(cut_accuracy, accuracy) << cut.front();
  }
}

TEST(Evaluation, CountsEachClass) {
  const TempDir dir;
  tiny_train(dir / "run", {"data.validation=24"});
  const RunEvaluation whole = evaluate_run(dir / "run", {}, "last", {}, /*by_class=*/true);
  ASSERT_EQ(whole.test.classes.size(), 10u);
  int64_t correct = 0;
  for (const ClassCount& count : whole.test.classes) {
    EXPECT_EQ(count.targets, 4);
    correct += count.correct;
  }
  EXPECT_EQ(correct, std::lround(whole.test.metrics[0] * 40));
  EXPECT_GT(correct, 0);
  ASSERT_EQ(whole.validation->classes.size(), 10u);
  const RunEvaluation cut = evaluate_run(dir / "run", Overrides{"workers=3", "train.batch=15"},
                                         "last", {}, /*by_class=*/true);
  for (size_t c = 0; c < 10; ++c) {
    EXPECT_EQ(cut.test.classes[c].targets, 4) << c;
    EXPECT_EQ(cut.test.classes[c].correct, whole.test.classes[c].correct) << c;
  }
  EXPECT_TRUE(evaluate_run(dir / "run", {}).test.classes.empty());
}

/// A word whose vector is NaN makes later losses NaN, and leaves earlier losses as they are.
TEST(Evaluation, HidesNoLossThatIsNotFinite) {
  const TempDir dir;
  const std::string text = "odd\n" + tiny_lines(98) + "one two odd\n";  // odd: known, last word
  const Config config = tiny_text_config(dir.write("text", text), {"train.batch=1"});
  Prepared run(config);
  run.load();
  with_replicas(config, [&](ReplicaTest& test) {
    const auto evaluate = [&] {
      const TallyValues found = *test.replica.evaluate(*run.loader(Split::test, 0));
      EXPECT_EQ(found.targets(), 4 + 5 + 4 + 5 + 4 - 1);
      return std::pair(found.mean_loss(), found.value(run.metrics()[0], 0));
    };
    const auto [loss, perplexity] = evaluate();
    EXPECT_TRUE(std::isfinite(loss) && std::isfinite(perplexity));
    const FlatParameters& parameters = test.replica.parameters();
    for (const Segment& segment : parameters.segments()) {
      if (segment.name != "encoder.weight") continue;
      const int64_t odd = Vocabulary(run.facts().names).number("odd");
      FlatParameters::view(parameters.weight(), segment).data<float>()[odd * 12] =
          std::numeric_limits<float>::quiet_NaN();
    }
    const auto [spoilt_loss, spoilt_perplexity] = evaluate();
    EXPECT_TRUE(std::isnan(spoilt_loss)) << spoilt_loss;
    EXPECT_TRUE(std::isnan(spoilt_perplexity)) << spoilt_perplexity;
  });
}

/// The checkpoint of a run that stopped within an epoch has the state of its columns.
TEST(Evaluation, TakesNothingThatAModelCarries) {
  const TempDir dir;
  tiny_text_train(dir / "run", dir.write("text", tiny_lines(100)), {"train.max_steps=3"});
  const auto perplexity = [&](const Overrides& overrides) {
    return evaluate_run(dir / "run", overrides).test.metrics[0];
  };
  EXPECT_EQ(perplexity({"train.batch=2"}), perplexity({"train.eval_batch=2"}));
  // bf16 rounds each output by 2^-9 at most
  const double trained = perplexity({});
  EXPECT_NEAR(perplexity({"train.precision=bf16", "train.backend=reference"}), trained,
              0.02 * trained);
}

}  // namespace
}  // namespace wisp
