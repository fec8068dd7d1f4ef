// Tests of training on speech: the promises of the trainer for any task, and the parts for CTC.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/support/command.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

void run(const std::string& out, const Config& config,
         RunDirectory::Open open = RunDirectory::Open::create) {
  train(config, {out, open, /*quiet=*/true});
}

/// Steps have a number of utterances, or a budget of frames.
TEST(SpeechRun, AResumedRunHasTheBitsOfOneThatWasNotStopped) {
  const TempDir dir;
  const std::string manifest = write_tones(dir);
  const Overrides dgc = {"workers=2",
                         "train.epochs=4",
                         "compression.method=dgc",
                         "compression.ratio=0.1",
                         "data.frequency_masks=2",
                         "data.time_masks=1",
                         "data.speed_percent=5"};
  for (const std::string& steps : {std::string("data.frames=0"), std::string("data.frames=256")}) {
    const Overrides all = dgc + Overrides{steps};
    run(dir / "whole", tone_config(manifest, all), RunDirectory::Open::overwrite);
    run(dir / "cut", tone_config(manifest, all + Overrides{"train.max_steps=5"}),
        RunDirectory::Open::overwrite);
    run(dir / "cut", tone_config(manifest, all), RunDirectory::Open::resume);
    EXPECT_TRUE(checkpoint_content(dir / "cut", 8) == checkpoint_content(dir / "whole", 8))
        << steps;
  }
}

TEST(SpeechRun, TellsOfTextsThatTheirFramesCannotHold) {
  const TempDir dir;
  const std::string manifest = write_tones(dir);
  std::string list = read_text(manifest);
  list.replace(list.find("low"), 3, "low low low low low low");
  dir.write("list.csv", list);
  testing::internal::CaptureStderr();
  const std::optional<Summary> summary =
      train(tone_config(manifest, {"train.epochs=2"}),
            {dir / "run", RunDirectory::Open::create, /*quiet=*/true});
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("epoch 1: 12.50 % of the texts have more letters than their utterances"),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("epoch 2: 12.50 %"), std::string::npos) << "told once";
  EXPECT_EQ(summary->score("test_too_short"), 1.0 / 8);
}

/// The sums of the test units by name; their total is the summary's score.
std::map<std::string, std::pair<double, double>> units_of(const std::string& run) {
  const Summary summary = Summary::from_json(run + "/summary.json");
  std::map<std::string, std::pair<double, double>> units;
  double edits = 0.0, words = 0.0;
  for (const auto& [name, sum, divisor] : summary.test_units) {
    units[name] = {sum, divisor};
    edits += sum;
    words += divisor;
  }
  EXPECT_EQ(edits / words, summary.score("test_wer"));
  return units;
}

TEST(SpeechRun, CountsTheErrorsOfEachTestSpeaker) {
  const TempDir dir;
  const std::string manifest = write_tones(dir);
  run(dir / "run", tone_config(manifest, {"train.epochs=12"}));
  const auto units = units_of(dir / "run");
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units.at("anna").second, 4.0);
  EXPECT_EQ(units.at("ben").second, 8.0);
  EXPECT_NE(units.at("anna").first, units.at("ben").first) << "nothing to confuse";
  std::filesystem::remove(dir / "run/summary.json");
  run(dir / "run", tone_config(manifest, {"train.epochs=12", "workers=2"}),
      RunDirectory::Open::resume);
  EXPECT_EQ(units_of(dir / "run"), units) << "the same weights, evaluated by two workers";
}

TEST(SpeechRun, HasNoTestUnitsUnlessAllUtterancesNameTheirSpeakers) {
  const TempDir dir;
  std::string list = read_text(write_tones(dir));
  list.replace(list.find(",anna"), 5, ",");
  const std::string manifest = dir.write("list.csv", list);
  run(dir / "run", tone_config(manifest, {"train.max_steps=1"}));
  EXPECT_EQ(read_text(dir / "run/summary.json").find("\"units\""), std::string::npos);
}

TEST(SpeechRun, TellsWhatOfItsDataWasPassedOver) {
  const TempDir dir;
  for (const char* subset : {"train", "test"}) {
    std::string texts;
    for (int i = 0; i < 4; ++i) {
      dir.write(concat(subset, "/s/", i, ".wav"), tone(true, 5000));
      texts += concat(i, " HI\n");
    }
    dir.write(concat(subset, "/s/s.trans.txt"), texts);
    dir.write(concat(subset, "/s/._s.trans.txt"), "");
  }
  const Config config = tone_config(
      "", {"data={name=\"librispeech\", validation=[], train=[\"train\"], test=[\"test\"]}",
           "data.path=" + dir.path(), "train.epochs=1"});
  testing::internal::CaptureStderr();
  run(dir / "run", config);
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* subset : {"train", "test"})
    EXPECT_NE(told.find(concat("wisp: ", dir / subset,
                               ": 1 files of macOS (._…, __MACOSX) were skipped, such "
                               "as s/._s.trans.txt\n")),
              std::string::npos)
        << told;
  const std::vector<std::string> notices = evaluate_run(dir / "run", {}, "last", {}).notices;
  EXPECT_EQ(notices.size(), 3u) << "and characters that never occur";
}

}  // namespace
}  // namespace wisp
