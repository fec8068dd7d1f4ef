#include "data/speech/audio_reader.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

constexpr int64_t kFileRates[] = {8000, 16000, 44100};

class AudioFiles : public testing::Test {
 protected:
  /// Writes a file of about 0.1 seconds and returns its path.
  std::string file(int64_t rate) const {
    std::vector<int> wave;
    for (int i = 0; i < rate / 10; ++i) wave.push_back(i * 7919 % 20000 - 10000);
    return dir_.write(concat(rate, ".wav"), wav_file(pcm16(wave), {.rate = rate}));
  }

  TempDir dir_;
  const AudioReader reader_{16000};
};

TEST_F(AudioFiles, AreReadAtOneRate) {
  for (const int64_t rate : kFileRates) {
    const std::string path = file(rate);
    const std::vector<float> samples = reader_.read(path);
    EXPECT_EQ(samples, Resampler(rate, 16000).resample(read_audio(path).samples));
    EXPECT_EQ(reader_.resampled(path, reader_.length(path)), std::ssize(samples));
  }
}

TEST_F(AudioFiles, AreReadAlikeByThreads) {
  std::vector<std::string> paths;
  std::vector<std::vector<float>> expected;
  for (const int64_t rate : kFileRates) {
    paths.push_back(file(rate));
    expected.push_back(AudioReader(16000).read(paths.back()));
  }
  std::vector<std::vector<float>> read(paths.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < paths.size(); ++i)
      threads.emplace_back([&, i] {
        for (size_t k = 0; k < paths.size(); ++k) read[i] = reader_.read(paths[(i + k) % 3]);
      });
  }
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(read[i], expected[(i + 2) % 3]);
}

TEST_F(AudioFiles, AreReadWithoutAHeaderWhereTheirNamesSaySo) {
  const AudioReader reader(16000, {.rate = 8000, .channels = 2, .big_endian = true});
  for (const char* name : {"a.raw", "a.pcm"}) {
    const std::string path = dir_.write(name, big_endian(0x4000'2000, 4) + big_endian(0, 4));
    EXPECT_EQ(reader.read(path), Resampler(8000, 16000).resample(std::vector<float>{0.375f, 0}));
    EXPECT_EQ(reader.resampled(path, reader.length(path)), 4);
  }
  const std::string wav = file(16000);
  EXPECT_EQ(reader.read(wav), read_audio(wav).samples);
  EXPECT_EQ(reader.length(wav).samples, 1600);
}

TEST_F(AudioFiles, WithoutAHeaderAreRefusedWhereNobodyToldTheRate) {
  const std::string path = dir_.write("a.raw", "1234");
  const std::string complaint =
      path +
      ": has no header, by its name, and data.raw_rate is not set; expected a FLAC, WAV or SPHERE "
      "file";
  EXPECT_EQ(error_of([&] { reader_.read(path); }), complaint);
  EXPECT_EQ(error_of([&] { reader_.length(path); }), complaint);
}

TEST_F(AudioFiles, OfRatesWithoutATableAreRefused) {
  const std::string odd = dir_.write("odd.wav", wav_file(pcm16({1, 2}), {.rate = 4'000'007}));
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(
        error_of([&] { reader_.read(odd); }),
        odd +
            ": resample: from 4000007 to 16000 samples per second takes too large a table of taps, "
            "expected rates with a larger common divisor");
}

TEST_F(AudioFiles, OfRatesThatMakeThemVeryLongAreRefused) {
  const std::string slow =
      dir_.write("slow.wav", wav_file(pcm16(std::vector<int>(17000)), {.rate = 1}));
  const std::string complaint = slow +
                                ": its 17000 samples at a rate of 1 are 272000000 at 16000, "
                                "expected 268435456 at most";
  EXPECT_EQ(error_of([&] { reader_.resampled(slow, reader_.length(slow)); }), complaint);
  EXPECT_EQ(error_of([&] { reader_.read(slow); }), complaint);
}

}  // namespace
}  // namespace wisp
