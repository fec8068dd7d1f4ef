#include "apps/survey/survey_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wisp {
namespace {

DataSurvey survey() {
  return {.facts = {.inputs = {{.name = "input", .sample = {0, 2, 1}}},
                    .classes = 2,
                    .names = {"cat", "a dog"}},
          .batch = 4,
          .splits = {{.split = Split::train,
                      .samples = 9,
                      .work = 9,
                      .steps = 2,
                      .targets = 8,
                      .classes = {5, 3},
                      .inputs = {Moments{0.25, 1.0}},
                      .damaged = 1,
                      .damage = {"a.jpg: the file is cut off"}},
                     {.split = Split::test,
                      .samples = 3,
                      .work = 3,
                      .steps = 1,
                      .targets = 3,
                      .classes = {1, 2},
                      .inputs = {std::nullopt}}}};
}

TEST(SurveyText, HasAColumnForEachSplit) {
  EXPECT_EQ(survey_table(survey()), R"(input: any x 2 x 1 f32
2 classes; train.batch is 4

                               train          test
samples                            9             3
targets                            8             3
steps of an epoch                  2             1
input: mean, deviation  0.250, 1.000             -
damaged                            1             0

cat                                5             1
"a dog"                            3             2

damaged in train, 1 of 1:
a.jpg: the file is cut off
)");
}

TEST(SurveyText, TellsWhatWasPassedOver) {
  DataSurvey some = survey();
  some.notices = {"a: 2 links passed over", "b: 1 file passed over"};
  EXPECT_TRUE(survey_table(some).ends_with(
      "\na.jpg: the file is cut off\n\na: 2 links passed over\nb: 1 file passed over\n"));
  EXPECT_EQ(nlohmann::json::parse(survey_json(some))["notices"], some.notices);
}

TEST(SurveyText, ShowsTheMostFrequentOfManyClasses) {
  DataSurvey many = survey();
  many.facts.classes = 30;
  many.facts.names.clear();
  for (SplitSurvey& split : many.splits) split.classes.assign(30, 1);
  many.splits[0].classes[20] = 7;
  many.splits[1].classes[3] = 0;
  many.splits[0].outside = 6;
  const std::string text = survey_table(many);
  for (const char* rows : {"targets that are no class             6             0\n",
                           "\n20                                    7             1\n"
                           "0                                     1             1\n",
                           "the 20 others                        20            20\n"
                           "classes without a target              0             1\n"})
    EXPECT_NE(text.find(rows), std::string::npos) << text;
}

TEST(SurveyText, IsJsonForPrograms) {
  const nlohmann::json json = nlohmann::json::parse(survey_json(survey()));
  EXPECT_EQ(json["inputs"][0]["sample"], (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(json["names"][1], "a dog");
  EXPECT_EQ(json["splits"]["train"]["classes"], (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(json["splits"]["train"]["damage"][0], "a.jpg: the file is cut off");
  EXPECT_EQ(json["splits"]["train"]["inputs"][0]["mean"], 0.25);
  EXPECT_TRUE(json["splits"]["test"]["inputs"][0].empty());
  EXPECT_FALSE(json["splits"].contains("validation"));
  EXPECT_TRUE(json["notices"].empty());
}

}  // namespace
}  // namespace wisp
