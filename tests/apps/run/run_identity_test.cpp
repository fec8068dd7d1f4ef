#include "apps/run/run_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>

#include "apps/reference/config_reference.h"
#include "apps/setup/shared_configuration.h"
#include "apps/version.h"
#include "data/images/image_source.h"
#include "tests/support/error_of.h"
#include "tests/support/random_images.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

/// The error text of each of three ranks if rank 1 has `other`.
std::vector<std::string> heard(const std::vector<NamedValue>& common,
                               const std::vector<NamedValue>& other) {
  ThreadGroup group(3, {}, 30.0);
  return run_ranks(group, [&](Communicator& communicator) {
    check_agreement(communicator, communicator.rank() == 1 ? other : common);
  });
}

TEST(RunIdentity, AnyKeyOfWhichOneRankHasAnotherValueIsNamed) {
  std::set<std::string> of_machines;
  for (const ConfigKey& key : config_keys()) {
    ConfigKey changed = key;
    changed.value = "\"another\"";
    const std::vector<std::string> words =
        heard(configuration_of({&key, 1}), configuration_of({&changed, 1}));
    if (words == of_all(3, "")) {
      of_machines.insert(concat(key.name, " (", key.type, ")"));
      continue;
    }
    for (const std::string& text : words) {
      EXPECT_NE(text.find(concat("\n  ", key.name, ": ranks 0, 2 have ")), text.npos) << text;
      EXPECT_NE(text.find(", rank 1 has \"another\"\n"), text.npos) << text;
    }
  }
  EXPECT_EQ(of_machines,
            (std::set<std::string>{
                "comm_threads (integer)", "data.cache (string)", "data.noise (string)",
                "data.path (string)", "data.test (string)", "data.threads (integer)",
                "data.train (string)", "data.validation (string)", "model.init (string)",
                "record.gradients.out (string)", "threads (integer)"}));
}

TEST(RunIdentity, TheProgramIsCompared) {
  const std::vector<NamedValue> values = configuration_of({});
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values.front().name, "the program");
  EXPECT_EQ(values.front().value, program_version());
}

std::vector<NamedValue> told(const Overrides& overrides) {
  return configuration_of(Prepared(tiny_config(overrides)).config().keys());
}

TEST(RunIdentity, RanksWithOtherMethodsHearOfTheirKeys) {
  const std::string words =
      heard(told({"compression.method=topk"}), told({"compression.method=qsgd"})).front();
  EXPECT_NE(words.find("compression.method: ranks 0, 2 have \"topk\", rank 1 has \"qsgd\""),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("compression.levels: ranks 0, 2 have none, rank 1 has "), std::string::npos)
      << words;
}

TEST(RunIdentity, ARuleOfAPolicyIsCompared) {
  const auto rule = [](const char* bound) {
    return Overrides{concat("compression.policy=[{method=\"fp16\", min_numel=", bound, "}]")};
  };
  const std::string words = heard(told(rule("10")), told(rule("11"))).front();
  EXPECT_NE(words.find("compression.policy: ranks 0, 2 have "), std::string::npos) << words;
}

std::vector<NamedValue> data_of(const Config& config) {
  Prepared run(config);
  run.load();
  return data_of(RunFacts::of(run), run.options().init);
}

/// The names of the values that differ.
std::vector<std::string> differences(const std::vector<NamedValue>& a,
                                     const std::vector<NamedValue>& b) {
  std::vector<std::string> names;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i].value != b[i].value) names.push_back(a[i].name);
  return names;
}

TEST(RunIdentity, AWordOfATextTellsItFromOthers) {
  const TempDir dir;
  const std::string text = tiny_lines(100);
  std::string other = text, renamed = text;
  other.replace(other.rfind("five six seven"), 14, "seven six five");
  renamed.replace(renamed.find("one"), 3, "uno");
  const auto data = [&](const std::string& content) {
    return data_of(tiny_text_config(dir.write("text", content)));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(differences(data(text), data(text)), Names());
  EXPECT_EQ(differences(data(text), data(other)), Names({"the test data"}));
  EXPECT_EQ(differences(data(text), data(renamed)).front(), "the classes");
}

TEST(RunIdentity, APixelOrALabelTellsImagesFromOthers) {
  const auto digest = [](const ImageSet& set) {
    return ImageExamples(set, random_normalization(3), DType::f32, true).digest();
  };
  const auto images = [] { return random_images({20, 8, 8, 3}); };
  const uint64_t before = digest(images());
  EXPECT_EQ(digest(images()), before);
  ImageSet changed = images();
  changed.images.data<uint8_t>()[3000] ^= 1;
  EXPECT_NE(digest(changed), before);
  changed = images();
  std::swap(changed.labels.data<int32_t>()[2], changed.labels.data<int32_t>()[3]);
  EXPECT_NE(digest(changed), before);
  EXPECT_NE(digest(random_images({19, 8, 8, 3})), before);
}

TEST(RunIdentity, ATranscriptOrALengthTellsSpeechFromOthers) {
  if (!WISP_HAS_SNDFILE) GTEST_SKIP() << "no libsndfile";
  const TempDir dir, elsewhere;
  const auto data = [](const std::string& manifest) { return data_of(tone_config(manifest)); };
  const std::vector<NamedValue> before = data(write_tones(dir));
  EXPECT_TRUE(differences(before, data(write_tones(elsewhere))).empty()) << "paths may differ";
  std::string list = read_text(dir / "list.csv");
  list.replace(list.find("low"), 3, "owl");
  const std::vector<std::string> both = {"the train data", "the test data"};
  EXPECT_EQ(differences(before, data(dir.write("other.csv", list))), both);
  elsewhere.write("3.wav", tone(true, 6000));
  EXPECT_EQ(differences(before, data(elsewhere / "list.csv")), both);
}

TEST(RunIdentity, AnotherFileOfWeightsIsToldFromItsContents) {
  const TempDir dir;
  const auto from = [&](const std::string& content) {
    return data_of(RunFacts(), dir.write(concat("weights", content.size()), content));
  };
  EXPECT_TRUE(differences(from("abc"), from("abc")).empty());
  EXPECT_EQ(differences(from("abc"), from("abd")),
            std::vector<std::string>{"the file of model.init"});
}

/// Each model that this makes draws different weights.
const ModelRegistration registration("drawn_apart", "test: replicas that start apart",
                                     [](Config& config, const Facts& facts) {
                                       static std::atomic<int> made{0};
                                       std::unique_ptr<Model> model =
                                           make_model("mlp", config, facts);
                                       model->parameters().front()->init.value += ++made;
                                       return model;
                                     });

TEST(RunIdentity, WorkersThatStartFromOtherWeightsDoNotTrain) {
  const TempDir dir;
  const std::string error = error_of([&] {
    tiny_train(dir / "run", {"workers=2", "model.name=drawn_apart"});
  });
  EXPECT_NE(error.find("\n  weights before step 0: rank 0 has "), std::string::npos) << error;
}

/// The error or log of a run that stopped after `steps`, of 4 in an epoch, and resumes with
/// `overrides`.
std::string resumed(int steps, const Overrides& overrides) {
  const TempDir dir;
  tiny_train(dir / "run", {concat("train.max_steps=", steps)});
  testing::internal::CaptureStderr();
  const std::string error = error_of([&] {
    train(tiny_config(Overrides{"train.epochs=2"} + overrides), {dir / "run", Open::resume});
  });
  const std::string said = testing::internal::GetCapturedStderr();
  return error == "no error" ? said : error;
}

TEST(ResumedRun, WithinAnEpochItTakesTheSamplesThatItHadLeft) {
  for (const char* other :
       {"seed=2", "data.seed=2", "data.augment=false", "train.one_batch=true"}) {
    const std::string key = std::string(other).substr(0, std::string(other).find('='));
    const std::string error = resumed(3, {other});
    EXPECT_NE(error.find("the run stopped after 3 of the 4 steps of an epoch, and the rest of "
                         "the epoch would take other samples: " +
                         key + " is "),
              std::string::npos)
        << error;
    const std::string said = resumed(4, {other});
    EXPECT_NE(said.find("this run is resumed with changes: " + key + " is "), std::string::npos)
        << said;
  }
  // as many steps, with fewer samples each
  const std::string error = resumed(3, {"train.batch=30", "data.train_count=128"});
  EXPECT_NE(error.find("train.batch is 30, was 32"), std::string::npos) << error;
}

TEST(ResumedRun, SaysWhatOfItIsOtherwise) {
  const std::string said = resumed(3, {"optimizer.lr=0.05", "threads=0"});
  EXPECT_NE(said.find("this run is resumed with changes: "), std::string::npos) << said;
  EXPECT_NE(said.find("; optimizer.lr is 0.05, was 0.1\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("threads is"), std::string::npos) << said;
}

TEST(ResumedRun, OfTheSameSaysNothing) {
  const TempDir dir;
  for (const Open open : {Open::create, Open::resume}) {
    testing::internal::CaptureStderr();
    train(tiny_config({"train.epochs=1"}), {dir / "run", open});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("resumed with changes"), std::string::npos) << said;
  }
}

TEST(ResumedRun, OfCheckpointsAloneGoesOn) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=3"});
  for (const char* name : {"config.toml", "facts.json", "commit.txt"})
    std::filesystem::remove(dir / concat("run/", name));
  EXPECT_EQ(tiny_train(dir / "run", {"train.max_steps=5", "seed=2"}, Open::resume).steps, 5);
}

TEST(ResumedRun, WithinAnEpochReadsTheSameText) {
  const TempDir dir;
  std::string other = tiny_lines(100);
  other.replace(other.find("five six seven"), 14, "seven six five");
  const std::string text = dir.write("text", tiny_lines(100)), changed = dir.write("other", other);
  tiny_text_train(dir / "run", text, {"train.max_steps=3"});
  const auto error = [&](const std::string& path, const Overrides& overrides) {
    return error_of([&] {
      train(tiny_text_config(path, overrides), {dir / "run", Open::resume, true});
    });
  };
  const std::string refusal = error(changed, {});
  EXPECT_NE(refusal.find("take other samples: the train data is "), std::string::npos) << refusal;
  EXPECT_EQ(error(dir.write("copy", tiny_lines(100)), {"train.max_steps=12"}), "no error");
  EXPECT_EQ(error(changed, {"train.max_steps=14"}), "no error") << "an epoch begins";
  EXPECT_EQ(error(changed, {"train.max_steps=15"}), "no error") << "which was this text's";
  EXPECT_NE(error(text, {}).find("take other samples: the train data is "), std::string::npos);
}

}  // namespace
}  // namespace wisp
