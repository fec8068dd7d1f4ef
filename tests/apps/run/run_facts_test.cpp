#include "apps/run/run_facts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

TEST(RunFacts, ReadBackWhatWasWritten) {
  const TempDir dir;
  const RunFacts written{
      .facts = {.inputs = {{.name = "sound",
                            .sample = {0, 161},
                            .padded = true,
                            .sound = {.rate = 8000, .mels = 40}},
                           {.name = "speaker", .dtype = DType::i32, .ids = 7}},
                .classes = 29,
                .names = {"a", "\"", "ß"},
                .work = "frames"},
      .metrics = {{.name = "word_error_rate", .percent = true, .lower_is_better = true},
                  {.name = "loss_of_something"}},
      .has_validation = true,
      .data = {{.split = "train", .samples = 7, .digest = "00000000000000ff"}}};
  dir.write("facts.json", written.json());
  const RunFacts read = RunFacts::read(dir.path());
  EXPECT_EQ(read.json(), written.json());
  EXPECT_EQ(read.facts.inputs[0].sample, Shape({0, 161}));
  EXPECT_EQ(read.facts.inputs[1].dtype, DType::i32);
  EXPECT_EQ(read.facts.inputs, written.facts.inputs);
  EXPECT_EQ(read.facts.names, written.facts.names);
  EXPECT_TRUE(read.metric().better(0.1, 0.2));
  EXPECT_EQ(read.metric().text(0.1234), "12.34 %");
  EXPECT_EQ(read.metrics[1].text(78.4123), "78.41");
  ASSERT_EQ(read.data.size(), 1u);
  EXPECT_EQ(read.data[0].str(), "7 samples, 00000000000000ff");
}

TEST(RunFacts, ARunFromBeforeLearnedPictures) {
  const TempDir dir;
  const RunFacts facts = RunFacts::read(dir.path());
  EXPECT_EQ(facts.metric().name, "accuracy");
  EXPECT_EQ(facts.facts.work, "images");
  EXPECT_FALSE(facts.has_validation);
}

TEST(RunFacts, DamageIsNamed) {
  const TempDir dir;
  dir.write("facts.json", "{\"inputs\": []");
  EXPECT_NE(
      error_of([&] { RunFacts::read(dir.path()); }).find("facts.json is damaged or incomplete: "),
      std::string::npos);
  const auto complaint = [&](const std::string& text) {
    dir.write("facts.json", text);
    const std::string begin = dir / "facts.json is damaged or incomplete: ";
    const std::string error = error_of([&] { RunFacts::read(dir.path()); });
    EXPECT_TRUE(error.starts_with(begin)) << error;
    return error.substr(std::min(error.size(), begin.size()));
  };
  EXPECT_EQ(complaint("[]"), "there is no inputs");
  const auto of_sample = [](const char* sample) {
    return concat(R"({"inputs": [{"name": "x", "dtype": "f32", "sample": )", sample, "}]}");
  };
  for (const char* sample : {"[60000, 60000, 3]", "[-1]", "[9223372036854775807, 2]"})
    EXPECT_EQ(complaint(of_sample(sample)),
              "an input's sample has more than 268435456 values, or an extent below 0");
  const auto of_names = [](const char* classes) {
    return concat(R"({"inputs": [], "classes": )", classes, R"(, "names": ["a", "b"]})");
  };
  EXPECT_EQ(complaint(of_names("1")), "2 names of 1 classes, expected no more than classes");
  EXPECT_EQ(complaint(of_names("1000000000")), "classes is 1000000000, expected 0 to 268435456");
  EXPECT_EQ(complaint("{\"inputs\": 3}"), "inputs is 3, expected a list or an object");
  EXPECT_EQ(complaint(std::string(100'000, '[')), "it is nested too deeply");
  EXPECT_EQ(complaint(R"({"inputs": [[]]})"), "there is no sample");
  const std::string good = RunFacts{.facts = {.inputs = {{.name = "x", .sample = {3}}}}}.json();
  const auto other = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return complaint(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(other("\"classes\": 0", "\"classes\": \"0\""),
            "classes is \"0\", expected a whole number");
  EXPECT_EQ(other("\"classes\": 0", "\"classes\": 1e300"),
            "classes is 1e+300, expected a whole number");
  EXPECT_EQ(other("\"names\": []", "\"names\": [1]"), "names[0] is 1, expected a text");
  EXPECT_EQ(other("\"names\": []", "\"names\": [], \"names\": []"), "names is there twice");
  EXPECT_EQ(other("\"percent\": true", "\"percent\": 1"), "percent is 1, expected true or false");
  fs::remove(dir / "facts.json");
  ASSERT_EQ(mkfifo((dir / "facts.json").c_str(), 0600), 0);
  EXPECT_NE(error_of([&] { RunFacts::read(dir.path()); }).find("it is no file, but a pipe"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              static_cast<void>(RunFacts{.facts = {.names = {"\x80"}}}.json());
            }).find("the names of inputs, classes and metrics have to be UTF-8"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
