#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "data/data_source.h"
#include "data/loader.h"
#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

std::unique_ptr<DataSource> source(const std::string& name, const std::vector<std::string>& keys) {
  std::vector<std::string> overrides{"data.name=" + name};
  overrides.insert(overrides.end(), keys.begin(), keys.end());
  Config config = Config::from_text("", "speech.toml", overrides);
  return make_data_source(config);
}

class SpeechCorpora : public testing::Test {
 protected:
  SpeechCorpora() {
    for (const char* speaker : {"fa", "fb", "mc", "md"}) say("an4/wav/an4_clstk", speaker, "YES");
    say("an4/wav/an4test_clstk", "mt", "NO");
    for (const char* subset : {"train-clean-100", "dev-clean", "test-clean", "test-other"})
      say(concat("LibriSpeech/", subset), "19", "HE SAID");
  }
  void say(const std::string& folder, const std::string& speaker, const std::string& text) const {
    const std::string place = concat(folder, "/", speaker, "/", speaker);
    dir_.write(place + ".trans.txt",
               concat(speaker, "-1 ", text, "\n", speaker, "-2 ", text, "\n"));
    for (const char* id : {"-1", "-2"})
      dir_.write(place + id + ".wav", wav_file(std::string(3200, '\1')));
  }

  TempDir dir_;
};

TEST_F(SpeechCorpora, An4HoldsOutSpeakers) {
  const auto an4 = source("an4", {"data.path=" + dir_.path(), "data.validation=1"});
  EXPECT_EQ(an4->facts().classes, 29);
  EXPECT_EQ(an4->facts().inputs[0].sample, Shape({0, 161}));
  EXPECT_TRUE(an4->facts().inputs[0].padded);
  EXPECT_TRUE(an4->has_validation());
  const Splits splits = an4->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 6);
  EXPECT_EQ(splits.validation->count(), 2);
  EXPECT_EQ(splits.test->count(), 2);
  const Splits all = source("an4", {"data.path=" + (dir_ / "an4")})->open(DType::f32);
  EXPECT_EQ(all.train->count(), 8);
  EXPECT_FALSE(all.validation);
  EXPECT_EQ(error_of([&] {
              source("an4", {"data.path=" + dir_.path(), "data.validation=4"})->open(DType::f32);
            }),
            "data.validation is 4 of 4 speakers, expected fewer");
  EXPECT_EQ(error_of([&] { source("an4", {"data.path=" + (dir_ / "x")})->open(DType::f32); }),
            dir_ / "x/wav/an4_clstk" + ": no such folder");
}

TEST_F(SpeechCorpora, LibriSpeechReadsSubsets) {
  const auto books = source("librispeech", {"data.path=" + dir_.path(),
                                            "data.train=[\"train-clean-100\", \"test-other\"]"});
  const Splits splits = books->open(DType::f32);
  EXPECT_EQ(splits.train->count(), 4);
  EXPECT_EQ(splits.validation->count(), 2);
  EXPECT_EQ(splits.test->count(), 2);
  EXPECT_FALSE(source("librispeech", {"data.validation=[]"})->has_validation());
  for (const std::string split : {"train", "test"}) {
    const auto none = source(
        "librispeech", {"data.path=" + dir_.path(), "data." + split + "=[]", "data.validation=[]"});
    EXPECT_NE(error_of([&] { none->open(DType::f32); }), "no error") << split;
  }
  EXPECT_EQ(
      error_of([&] {
        source("librispeech", {"data.path=" + dir_.path(), "data.train=[]"})->open(DType::f32);
      }),
      "librispeech: data.train is empty, expected some data");
}

TEST_F(SpeechCorpora, TellOnceWhatTheyPassOver) {
  dir_.write("an4/wav/an4_clstk/fa/fa-3.wav", "");
  const Splits splits =
      source("an4", {"data.path=" + dir_.path(), "data.validation=1"})->open(DType::f32);
  EXPECT_EQ(splits.notices,
            (std::vector<std::string>{
                dir_ / "an4/wav/an4_clstk" +
                    ": 1 sounds without a transcript were skipped, such as fa/fa-3.wav",
                "an4 train: 25 of 29 labels of data.alphabet have no training text: ', A, B, C, D, "
                "…"}));
}

TEST_F(SpeechCorpora, TellWhichLabelsNeverOccur) {
  const auto notices = [&](const std::string& alphabet) {
    return source("an4", {"data.path=" + dir_.path(), "data.alphabet=" + alphabet})
        ->open(DType::f32)
        .notices;
  };
  EXPECT_EQ(notices("YESNO"), std::vector<std::string>{"an4 train: 2 of 6 labels of data.alphabet "
                                                       "have no training text: N, O"});
}

TEST_F(SpeechCorpora, TellOfSoundsThatTheyTrainOn) {
  const auto list = [&](const std::string& name, const std::string& speakers) {
    std::string rows = "audio,text\n";
    for (const char c : speakers) rows += concat("an4/wav/an4_clstk/f", c, "/f", c, "-1.wav,yes\n");
    return dir_.write(name, rows);
  };
  const auto notices = [&](const std::string& train, const std::string& test) {
    return source("speech", {"data.train=" + list("train.csv", train),
                             "data.test=" + list("test.csv", test), "data.alphabet=YES"})
        ->open(DType::f32)
        .notices;
  };
  EXPECT_TRUE(notices("a", "b").empty());
  EXPECT_EQ(
      notices("ab", "b"),
      std::vector<std::string>{"speech test: 1 utterances have the sound of a training utterance"});
  EXPECT_EQ(notices("aa", "b"),
            std::vector<std::string>{"speech train: 1 utterances have the sound of another one"});
}

TEST_F(SpeechCorpora, ManifestsAreCorporaOfOnesOwn) {
  const std::string list = dir_.write(
      "list.csv",
      "audio,text\nan4/wav/an4_clstk/fa/fa-1.wav,ja\nan4/wav/an4_clstk/fb/fb-1.wav,nö\n");
  const auto own = source(
      "speech", {"data.train=" + list, "data.test=" + list, "data.alphabet=ajnö", "data.mels=40"});
  EXPECT_EQ(own->facts().classes, 5);
  EXPECT_EQ(own->facts().inputs[0].sample, Shape({0, 40}));
  EXPECT_FALSE(own->has_validation());
  EXPECT_EQ(own->open(DType::f32).train->count(), 2);
  EXPECT_EQ(error_of([&] { source("speech", {})->open(DType::f32); }),
            "data.train names no manifest");
  EXPECT_NE(error_of([&] {
              source("speech", {"data.train=" + list, "data.test=" + list})->open(DType::f32);
            }).find("speech train: fb-1: \"nö\" has 'ö'"),
            std::string::npos);
}

TEST_F(SpeechCorpora, NoiseIsMixedIntoTraining) {
  const std::string noise = dir_.write("noise.csv", "audio\nan4/wav/an4_clstk/fb/fb-1.wav\n");
  const std::vector<std::string> quiet{"data.path=" + dir_.path()};
  const auto first = [&](std::vector<std::string> keys, Split split) {
    keys.insert(keys.end(), quiet.begin(), quiet.end());
    const Splits splits = source("an4", keys)->open(DType::f32);
    Loader loader(*splits.of(split), {.batch = 1, .training = split == Split::train});
    loader.start_epoch(0);
    return values(loader.next()->inputs[0]);
  };
  const std::vector<std::string> mixed{"data.noise=" + noise, "data.noise_share=1"};
  EXPECT_NE(first(mixed, Split::train), first({}, Split::train));
  EXPECT_EQ(first(mixed, Split::test), first({}, Split::test));
  EXPECT_EQ(error_of([&] { source("an4", {"data.noise=" + noise}); }),
            concat("command line: data.noise is \"", noise,
                   "\" and data.noise_share 0, expected both or neither"));
  EXPECT_NE(error_of([&] { source("an4", {"data.noise_share=0.5"}); }).find("expected both"),
            std::string::npos);
}

TEST_F(SpeechCorpora, FilesMayHaveNoHeader) {
  dir_.write("a.raw", std::string(3200, '\1'));
  const std::string list = dir_.write("list.csv", "audio,text,duration\na.raw,ja,0.1\n");
  const std::vector<std::string> keys{"data.train=" + list, "data.test=" + list};
  const auto open = [&](const std::string& key) {
    std::vector<std::string> all = keys;
    all.push_back(key);
    return source("speech", all)->open(DType::f32);
  };
  EXPECT_EQ(open("data.raw_rate=16000").train->count(), 1);
  EXPECT_EQ(error_of([&] { open("data.raw_rate=8000"); }),
            dir_ / "a.raw" + ": 0.2 seconds, the manifest says 0.1");
  EXPECT_NE(error_of([&] { open("data.raw_rate=0"); }).find("data.raw_rate is not set"),
            std::string::npos);
}

TEST_F(SpeechCorpora, SpectrogramsAreKept) {
  const std::string cache = dir_ / "cache";
  source("an4", {"data.path=" + dir_.path(), "data.cache=" + cache})->open(DType::f32);
  EXPECT_TRUE(std::filesystem::is_directory(cache));
  const std::string file = dir_.write("file", "");
  EXPECT_EQ(error_of([&] {
              source("an4", {"data.path=" + dir_.path(), "data.cache=" + file})->open(DType::f32);
            }),
            concat("data.cache: ", file, ": cannot be made: Not a directory"));
}

}  // namespace
}  // namespace wisp
