#include "data/speech/speech_examples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/io/checkpoint.h"
#include "data/loader.h"
#include "data/speech/audio_file.h"
#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

std::string tone_file(int64_t samples, int64_t rate = 16000) {
  std::vector<int> wave;
  for (int64_t i = 0; i < samples; ++i)
    wave.push_back(static_cast<int>(8000 * std::sin(0.05 * static_cast<double>(i))));
  return wav_file(pcm16(wave), {.rate = rate});
}

class SpeechSet : public testing::Test {
 protected:
  /// Utterance i has (i + 1) · 1600 samples, and i + 1 letters a as its text.
  std::vector<Utterance> utterances(int64_t count) const {
    std::vector<Utterance> all;
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = concat("u", i);
      all.push_back({.id = name,
                     .audio = dir_.write(name + ".wav", tone_file((i + 1) * 1600)),
                     .text = std::string(static_cast<size_t>(i + 1), 'a')});
    }
    return all;
  }
  SpeechExamples examples(std::vector<Utterance> all, SpeechOptions options = {},
                          AudioAugmentOptions augment = {}) const {
    return {"speech train", std::move(all), Alphabet(), options, AudioAugment(augment)};
  }
  /// The bytes of inputs, lengths and targets in all batches of two epochs.
  std::vector<std::string> epochs(const SpeechExamples& speech) const {
    std::vector<std::string> held;
    Loader loader(speech, {.batch = 2, .seed = 3}, {.threads = 2});
    for (const int64_t epoch : {1, 2}) {
      loader.start_epoch(epoch);
      while (const std::optional<Batch> batch = loader.next())
        for (const Tensor& tensor : {batch->inputs[0], batch->lengths, batch->targets})
          held.emplace_back(reinterpret_cast<const char*>(tensor.raw()),
                            static_cast<size_t>(tensor.bytes()));
    }
    EXPECT_EQ(loader.last_damage(), "");
    return held;
  }

  TempDir dir_;
};

int64_t files_in(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST_F(SpeechSet, BatchesAreSpectrogramsTheLongestFirst) {
  const SpeechExamples speech = examples(utterances(5), {.compute = DType::f32, .quantum = 16});
  Loader loader(speech, {.batch = 2, .training = false});
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.inputs[0].shape(), Shape({2, 64, 161}));  // 1 + 8000 / 160 = 51 frames
  EXPECT_EQ(batch.lengths.data<int64_t>()[0], 51);
  EXPECT_EQ(batch.lengths.data<int64_t>()[1], 41);
  EXPECT_EQ(batch.targets.shape(), Shape({2, 5}));
  const std::vector<int32_t> expected{2, 2, 2, 2, 2, 2, 2, 2, 2, -1};
  EXPECT_EQ(std::vector<int32_t>(batch.targets.data<int32_t>(), batch.targets.data<int32_t>() + 10),
            expected);
  EXPECT_EQ(batch.samples.data<int64_t>()[0], 4);
  EXPECT_EQ(batch.count, 2);
  EXPECT_EQ(batch.work, 51 + 41);
  EXPECT_EQ(batch.ignored, 0);
  const Tensor features = Spectrogram().compute(read_audio(dir_ / "u4.wav").samples);
  const std::vector<double> read = values(batch.inputs[0]), own = values(features);
  for (size_t i = 0; i < own.size(); ++i) ASSERT_EQ(read[i], own[i]);
  for (size_t i = own.size(); i < 64 * 161; ++i) ASSERT_EQ(read[i], 0.0);
}

TEST_F(SpeechSet, OtherRatesAreResampled) {
  std::vector<Utterance> all = utterances(1);
  dir_.write("u0.wav", tone_file(4000, 8000));
  const SpeechExamples speech = examples(all);
  Loader loader(speech, {.batch = 1});
  loader.start_epoch(0);
  EXPECT_EQ(loader.next()->lengths.data<int64_t>()[0], 51);
}

TEST_F(SpeechSet, SpeedChangesTheLengthsOfAnEpoch) {
  const SpeechExamples speech = examples(utterances(12), {}, {.speed_percent = 10});
  const auto frames = [&](int64_t epoch) {
    int64_t sum = 0;
    for (const Piece& piece : speech.epoch(epoch, {.batch = 4})) sum += piece.work;
    return sum;
  };
  EXPECT_NE(frames(1), frames(2));
  EXPECT_EQ(frames(2), frames(2));
  Loader loader(speech, {.batch = 4, .seed = 5});
  loader.start_epoch(3);
  while (const std::optional<Batch> batch = loader.next()) {
    EXPECT_EQ(loader.last_damage(), "");
    const auto* length = batch->lengths.data<int64_t>();
    EXPECT_TRUE(
        std::is_sorted(std::make_reverse_iterator(length + 4), std::make_reverse_iterator(length)));
  }
}

TEST_F(SpeechSet, SpeedChangesNoBudgetedSteps) {
  const SpeechExamples speech =
      examples(utterances(40), {.step_frames = 1500}, {.speed_percent = 10});
  Loader loader(speech, {.workers = 2, .seed = 5});
  int64_t frames = 0;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    loader.start_epoch(epoch);
    while (const std::optional<Batch> batch = loader.next()) {
      frames += batch->work;
      EXPECT_LE(batch->inputs[0].shape()[0] * batch->inputs[0].shape()[1], 1500);
    }
  }
  EXPECT_GT(frames, 0);
  EXPECT_EQ(
      error_of([&] {
        examples(utterances(1), {.step_frames = 20}, {.speed_percent = 10}).epoch(0, {});
      }),
      "speech train: data.frames is 20, but with 1 workers x micro-batches and a longest utterance "
      "of 32 frames it must be at least 32");
}

TEST_F(SpeechSet, ADamagedFileHasNoTargets) {
  const std::vector<Utterance> all = utterances(2);
  const SpeechExamples speech = examples(all);
  dir_.write("u1.wav", tone_file(3200).substr(0, 2000));  // cut off after it was listed
  Loader loader(speech, {.batch = 2});
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.ignored, 1);
  EXPECT_EQ(loader.last_damage().find(all[1].audio + ": it is cut off"), 0u);
  EXPECT_EQ(batch.targets.data<int32_t>()[0], -1);
  EXPECT_EQ(batch.targets.data<int32_t>()[2], 2);
  for (int64_t i = 0; i < 21 * 161; ++i) ASSERT_EQ(batch.inputs[0].data<float>()[i], 0.0f);
}

TEST_F(SpeechSet, KeptSpectrogramsChangeNoBit) {
  const std::vector<Utterance> all = utterances(6);
  const struct {
    AudioAugmentOptions augment;
    int64_t kept;  // number of cache entries
  } kCases[] = {{{}, 6}, {{.frequency_masks = 2, .time_masks = 1}, 6}, {{.gain_db = 6}, 0}};
  for (const auto& [augment, kept] : kCases) {
    const TempDir cache;
    const SpeechOptions with{.cache = cache.path()};
    const std::vector<std::string> expected = epochs(examples(all, {}, augment));
    EXPECT_EQ(epochs(examples(all, with, augment)), expected) << "while they are kept";
    EXPECT_EQ(epochs(examples(all, with, augment)), expected) << "where they are found";
    EXPECT_EQ(files_in(cache.path()), kept);
  }
}

TEST_F(SpeechSet, KeptSpectrogramsAreOfTheSpeedThatWasRecorded) {
  const std::vector<Utterance> all = utterances(6);
  const SpeechOptions with{.cache = dir_ / "cache"};
  const AudioAugmentOptions speeds{.speed_percent = 10};
  epochs(examples(all, with, speeds));
  EXPECT_GT(files_in(with.cache), 0);
  EXPECT_EQ(epochs(examples(all, with)), epochs(examples(all)));
  EXPECT_EQ(epochs(examples(all, with, speeds)), epochs(examples(all, {}, speeds)));
}

/// Replaces the cached features with zeros.
void silence(const std::string& entry) {
  CheckpointWriter writer;
  {
    const CheckpointReader kept(entry);
    const std::vector<int64_t>& extents = kept.entry("features").extents;
    const Tensor features({extents[0], extents[1]}, DType::f32);
    std::fill_n(features.data<float>(), features.numel(), 0.0f);
    writer.add("features", features);
    writer.metadata("sound", kept.metadata("sound"));
  }
  writer.write(entry);
}

TEST_F(SpeechSet, KeptSpectrogramsSpareReadingTheSound) {
  const SpeechExamples speech = examples(utterances(2), {.cache = dir_ / "cache"});
  epochs(speech);
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "cache"))
    silence(entry.path());
  Loader loader(speech, {.batch = 2});
  loader.start_epoch(0);
  for (const double value : values(loader.next()->inputs[0])) ASSERT_EQ(value, 0.0);
  EXPECT_EQ(loader.damaged(), 0);
}

TEST_F(SpeechSet, AFolderThatCannotBeWrittenDamagesNothing) {
  const std::string cache = dir_ / "cache";
  const SpeechExamples speech = examples(utterances(2), {.cache = cache});
  std::filesystem::remove_all(cache);
  Loader loader(speech, {.batch = 2});
  loader.start_epoch(0);
  const std::string complaint = error_of([&] { loader.next(); });
  EXPECT_TRUE(complaint.starts_with(concat("data.cache: ", cache, "/"))) << complaint;
  EXPECT_TRUE(complaint.ends_with("cannot be opened for writing: No such file or directory"))
      << complaint;
  EXPECT_EQ(loader.damaged(), 0);
}

TEST_F(SpeechSet, SaysWhichUtteranceIsWrong) {
  const auto error = [&](auto change) {
    std::vector<Utterance> all = utterances(2);
    change(all[1]);
    return error_of([&] { examples(all); });
  };
  const std::string audio = dir_ / "u1.wav";
  EXPECT_EQ(error([](Utterance& u) { u.text = "a1"; }),
            "speech train: u1: \"a1\" has '1', expected characters of "
            "\"'ABCDEFGHIJKLMNOPQRSTUVWXYZ \"");
  EXPECT_EQ(error([](Utterance& u) { u.text = " "; }), "speech train: u1: the text is empty");
  EXPECT_EQ(error([](Utterance& u) { u.seconds = 3; }),
            audio + ": 0.2 seconds, the manifest says 3");
  EXPECT_EQ(error([&](Utterance&) { dir_.write("u1.wav", tone_file(100)); }),
            audio + ": 100 samples, expected at least 161");
  EXPECT_EQ(error([&](Utterance&) { dir_.write("u1.wav", tone_file(1)); }),
            audio + ": 1 samples, expected at least 161");
  const std::vector<Utterance> all = utterances(1);
  dir_.write("u0.wav", tone_file(170));
  EXPECT_EQ(error_of([&] { examples(all, {}, {.speed_percent = 10}); }),
            dir_ / "u0.wav" + ": 155 samples at the highest speed, expected at least 161");
  EXPECT_NE(error([&](Utterance&) { dir_.write("u1.wav", ""); }).find(audio), std::string::npos);
  EXPECT_EQ(error([](Utterance& u) { u.audio += "x"; }), audio + "x: there is no such file");
}

}  // namespace
}  // namespace wisp
