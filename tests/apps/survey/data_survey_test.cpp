#include "apps/survey/data_survey.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

DataSurvey survey_of(const Overrides& overrides) {
  Prepared prepared(tiny_config(overrides));
  prepared.load();
  return survey_data(prepared);
}

/// Examples of two numbers, the sample's index and 1, padded to a length. The class is the index
/// mod 5, but the data set has three classes. Every tenth sample is damaged.
class Uneven final : public Examples {
 public:
  int64_t count() const override { return 40; }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
    return cut_samples(count(), epoch, deal, "uneven");
  }
  void shape(const Piece& piece, Batch& batch) const override {
    const auto rows = static_cast<int64_t>(piece.rows.size());
    batch.inputs.resize(1);
    batch.inputs[0] = batch.inputs[0].fitted({rows, 1, 2, 1}, DType::f32);
    batch.targets = batch.targets.fitted({rows}, DType::i32);
    batch.lengths = batch.lengths.fitted({rows}, DType::i64);
    batch.samples = batch.samples.fitted({rows}, DType::i64);
  }
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override {
    const int64_t sample = piece.rows[static_cast<size_t>(row)];
    const bool damaged = sample % 10 == 9;
    batch.inputs[0].data<float>()[2 * row] = damaged ? 1e30f : static_cast<float>(sample);
    batch.inputs[0].data<float>()[2 * row + 1] = 1;
    batch.targets.data<int32_t>()[row] = damaged ? -1 : static_cast<int32_t>(sample % 5);
    batch.lengths.data<int64_t>()[row] = sample == 7 ? 100 : 1 + sample / 20;
    batch.samples.data<int64_t>()[row] = sample;
    return damaged ? concat("sample ", sample, " is damaged") : "";
  }
};

class UnevenSource final : public DataSource {
 public:
  Facts facts() const override {
    return {.inputs = {{.name = "input", .sample = {1, 2, 1}}}, .classes = 3};
  }
  Splits open(DType) const override {
    return {std::make_unique<Uneven>(), nullptr, std::make_unique<Uneven>()};
  }
};

const DataRegistration registration("test_uneven", "test: damaged and padded samples",
                                    [](Config&) { return std::make_unique<UnevenSource>(); });

DataSurvey survey_uneven() {
  Prepared prepared(Config::from_text(R"(
model = { name = "mlp", hidden = [2] }
data.name = "test_uneven"
train.batch = 8
)",
                                      "uneven.toml"));
  prepared.load();
  return survey_data(prepared);
}

TEST(DataSurvey, CountsWhatAllWorkersTogetherGet) {
  for (const Overrides& cluster :
       {Overrides{}, Overrides{"workers=4"}, Overrides{"workers=2", "train.accumulate=2"}}) {
    const DataSurvey survey =
        survey_of(cluster + Overrides{"train.batch=24", "data.validation=30"});
    EXPECT_EQ(survey.batch, 24);
    ASSERT_EQ(survey.splits.size(), 3u);
    const SplitSurvey &train = survey.splits[0], &validation = survey.splits[1],
                      &test = survey.splits[2];
    EXPECT_EQ(train.samples, 98);
    EXPECT_EQ(train.work, 98) << "what fills no step is read too";
    EXPECT_EQ(train.steps, 4);
    EXPECT_EQ(validation.split, Split::validation);
    EXPECT_EQ(validation.samples, 30);
    EXPECT_EQ(validation.steps, 2) << "the last is not full";
    EXPECT_EQ(test.samples, 40);
    EXPECT_EQ(test.targets, 40);
    EXPECT_EQ(test.classes, std::vector<int64_t>(10, 4)) << "sample i is of class i mod 10";
    EXPECT_EQ(train.damaged, 0);
    EXPECT_FALSE(train.lengths.has_value());
  }
}

TEST(DataSurvey, TellsWhatTheModelSees) {
  const DataSurvey survey = survey_of({});
  ASSERT_EQ(survey.splits.size(), 2u) << "no validation split";
  const SplitSurvey& test = survey.splits[1];
  // expected values from the samples
  Prepared prepared(tiny_config());
  prepared.load();
  Loader loader(*prepared.examples(Split::test), {.batch = 40, .training = false});
  loader.start_epoch(0);
  const Tensor input = loader.next()->inputs[0];
  const auto* begin = input.data<float>();
  const double mean =
      std::accumulate(begin, begin + input.numel(), 0.0) / static_cast<double>(input.numel());
  double variance = 0.0;
  for (int64_t i = 0; i < input.numel(); ++i)
    variance += (begin[i] - mean) * (begin[i] - mean) / static_cast<double>(input.numel());
  ASSERT_TRUE(test.inputs.at(0).has_value());
  EXPECT_NEAR(test.inputs[0]->mean, mean, 1e-9);  // the sums are double
  EXPECT_NEAR(test.inputs[0]->deviation, std::sqrt(variance), 1e-9);
}

TEST(DataSurvey, InputsAreInWhatTheModelComputesIn) {
  EXPECT_EQ(survey_of({"train.precision=f64", "train.backend=reference"}).facts.inputs[0].dtype,
            DType::f64);
}

TEST(DataSurvey, FindsDamageAndTargetsThatAreNoClass) {
  const SplitSurvey split = survey_uneven().splits[0];
  EXPECT_EQ(split.damaged, 4);
  EXPECT_EQ(split.damage,
            (std::vector<std::string>{"sample 9 is damaged", "sample 19 is damaged",
                                      "sample 29 is damaged", "sample 39 is damaged"}));
  EXPECT_EQ(split.targets, 36);
  EXPECT_EQ(split.classes, std::vector<int64_t>(3, 8));
  EXPECT_EQ(split.outside, 12) << "8 of class 3, 4 of class 4";
  // 0 to 39 without the damaged 9, 19, 29 and 39 add up to 780 - 96; there are 36 ones.
  EXPECT_DOUBLE_EQ(split.inputs.at(0)->mean, (684.0 + 36.0) / 72.0);
}

TEST(DataSurvey, FindsTheLengthsOfPaddedRows) {
  const Spread lengths = *survey_uneven().splits[0].lengths;
  EXPECT_EQ(lengths.least, 1);
  EXPECT_EQ(lengths.median, 2) << "19 of 1, 20 of 2, one of 100";
  EXPECT_EQ(lengths.most, 100);
}

}  // namespace
}  // namespace wisp
