#include "apps/inference/transcribe.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

class Transcribe : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    train(tone_config(write_tones(*dir_)), {*dir_ / "run", RunDirectory::Open::create, true});
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::vector<Transcript> heard(const std::vector<std::string>& files,
                                       const std::optional<BeamOptions>& beam = {}) {
    Inference model(*dir_ / "run");
    std::vector<Transcript> found;
    transcribe(model, files, beam, [&](const Transcript& one) { found.push_back(one); });
    return found;
  }

  static TempDir* dir_;
};
TempDir* Transcribe::dir_ = nullptr;

TEST_F(Transcribe, HearsWhatItHasLearned) {
  for (const std::optional<BeamOptions>& beam :
       {std::optional<BeamOptions>(), std::optional<BeamOptions>({.width = 8})}) {
    const std::vector<Transcript> found = heard({*dir_ / "2.wav", *dir_ / "5.wav"}, beam);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].text, "LOW") << found[0].error;
    EXPECT_EQ(found[1].text, "HI HI") << found[1].error;
    ASSERT_EQ(found[1].words.size(), 2u);
    EXPECT_EQ(found[1].words[1].word, "HI");
    const double seconds = (5000 + 5 * 160) / 16000.0;
    EXPECT_GE(found[1].words[0].begin_s, 0.0);
    EXPECT_LE(found[1].words[0].end_s, found[1].words[1].begin_s);
    EXPECT_LE(found[1].words[1].end_s, seconds + 0.03);
  }
}

TEST_F(Transcribe, AFileThatCannotBeReadStopsNoOther) {
  const std::string bad = dir_->write("bad.wav", "no sound"),
                    small = dir_->write("small.wav", tone(true, 20)),
                    raw = dir_->write("a.raw", pcm16({1, 2}));
  const std::vector<Transcript> found = heard({bad, small, raw, *dir_ / "0.wav"});
  EXPECT_EQ(found[0].error.find(bad), 0u) << found[0].error;
  EXPECT_EQ(found[1].error.find(small), 0u) << found[1].error;
  EXPECT_EQ(found[2].error.find(raw + ": has no header"), 0u) << found[2].error;
  EXPECT_EQ(found[3].error, "");
  EXPECT_EQ(found[3].text, "LOW");
}

TEST_F(Transcribe, ReadsSoundWithoutAHeaderAsTheRunDoes) {
  constexpr size_t kHeader = 44;
  const std::string raw = dir_->write("low.raw", tone(false, 5320).substr(kHeader));
  const Overrides overrides{"data.raw_rate=16000"};
  Inference model(*dir_ / "run", overrides);
  transcribe(model, std::vector{raw}, {}, [](const Transcript& found) {
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(found.text, "LOW");
  });
}

TEST(TranscribeOfOthers, RefusesAModelThatHearsNothing) {
  const TempDir dir;
  tiny_train(dir / "run");
  Inference model(dir / "run");
  EXPECT_EQ(error_of([&] { transcribe(model, {}, {}, [](const Transcript&) {}); }),
            "transcribe: the run's model does not hear sound");
}

}  // namespace
}  // namespace wisp
