#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "data/speech/audio_file.h"
#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// Different samples of both signs.
std::vector<int> ramp(int count) {
  std::vector<int> samples;
  for (int i = 0; i < count; ++i) samples.push_back(i * 7919 % 65536 - 32768);
  return samples;
}

std::vector<float> scaled(const std::vector<int>& samples) {
  std::vector<float> result;
  for (const int s : samples) result.push_back(static_cast<float>(s) / 32768);
  return result;
}

std::string floats(const std::vector<float>& samples) {
  std::string text;
  for (const float s : samples) text += little_endian(std::bit_cast<uint32_t>(s), 4);
  return text;
}

std::string complaint(const std::string& bytes) {
  return error_of([&] { decode_audio(bytes); });
}

/// The samples of the file. Expects read_audio_length() to give their number and rate.
std::vector<float> read(const std::string& bytes) {
  const TempDir dir;
  const std::string path = dir.write("sound", bytes);
  const Audio audio = read_audio(path);
  const AudioLength length = read_audio_length(path);
  EXPECT_EQ(length.samples, std::ssize(audio.samples));
  EXPECT_EQ(length.rate, audio.rate);
  return audio.samples;
}

TEST(AudioCodec, ReadsFlac) {
  for (const int count : {1, 16, 192, 1000}) {
    const Audio audio = decode_audio(flac_file(ramp(count), 1, 44100));
    EXPECT_EQ(audio.rate, 44100);
    EXPECT_EQ(audio.samples, scaled(ramp(count))) << count;
  }
}

TEST(AudioCodec, ReadsFlacOfUnknownLength) {
  EXPECT_EQ(read(flac_file(ramp(500), 1, 16000, 0)), scaled(ramp(500)));
}

TEST(AudioCodec, ReadsWavOfAllWidths) {
  EXPECT_EQ(decode_audio(wav_file(pcm16(ramp(9)))).samples, scaled(ramp(9)));
  EXPECT_EQ(
      decode_audio(wav_file(little_endian(0x400000, 3) + little_endian(0x800000, 3), {.bits = 24}))
          .samples,
      std::vector<float>({0.5f, -1}));
  EXPECT_EQ(decode_audio(wav_file(little_endian(0xc0000000, 4), {.bits = 32})).samples,
            std::vector<float>({-0.5f}));
  EXPECT_EQ(decode_audio(wav_file(floats({0.1f, -1.5f}), {.tag = 3, .bits = 32})).samples,
            std::vector<float>({0.1f, -1.5f}));
}

// ITU-T G.711: 0xff is 0; 0x80 and 0 are the loudest values, 32124 of 32768.
TEST(AudioCodec, ReadsMuLaw) {
  const Audio audio =
      decode_audio(wav_file(std::string("\xff\x80\0", 3), {.tag = 7, .rate = 8000, .bits = 8}));
  EXPECT_EQ(audio.rate, 8000);
  EXPECT_EQ(audio.samples, std::vector<float>({0, 32124.0f / 32768, -32124.0f / 32768}));
}

TEST(AudioCodec, ReadsSphere) {
  const std::string data = big_endian(0x4000, 2) + big_endian(0x8000, 2);
  const Audio audio = decode_audio(sphere_file(data, 2));
  EXPECT_EQ(audio.rate, 16000);
  EXPECT_EQ(audio.samples, std::vector<float>({0.5f, -1}));
}

TEST(AudioCodec, AveragesChannels) {
  const std::vector<int> stereo{16384, 8192, -32768, 0};
  const std::vector<float> mono{0.375f, -0.5f};
  EXPECT_EQ(decode_audio(wav_file(pcm16(stereo), {.channels = 2})).samples, mono);
  EXPECT_EQ(decode_audio(flac_file(stereo, 2)).samples, mono);
}

TEST(AudioCodec, ReadsWavThatWasWrittenToAPipe) {
  const std::string file = wav_file(pcm16(ramp(5000)));
  for (const uint64_t size : {0xffffffffu, 0xffffffdbu, 0x80000000u, 0x7fffffd3u, 0x7ffff000u, 0u})
    for (const uint64_t riff : {size, size + 36}) {
      std::string open = file;
      open.replace(4, 4, little_endian(riff, 4)).replace(40, 4, little_endian(size, 4));
      EXPECT_EQ(read(open), scaled(ramp(5000))) << size;
    }
  EXPECT_EQ(complaint(wav_file("").replace(40, 4, "\xff\xff\xff\xff")), "it holds no samples");
}

TEST(AudioCodec, ReadsRf64AndRifx) {
  const std::string data = pcm16(ramp(5000));
  EXPECT_EQ(read(rf64_file(data, data.size())), scaled(ramp(5000)));
  EXPECT_EQ(read(rf64_file(data, 0)), scaled(ramp(5000))) << "written to a pipe";
  std::string highest_first;
  for (const int s : ramp(5000)) highest_first += big_endian(static_cast<uint64_t>(s), 2);
  EXPECT_EQ(read(rifx_file(highest_first)), scaled(ramp(5000)));
}

TEST(AudioCodec, ReadsSphereThatDoesNotCountItsSamples) {
  const std::string data = big_endian(0x4000, 2) + big_endian(0x8000, 2);
  EXPECT_EQ(read(sphere_file(data, 0)), std::vector<float>({0.5f, -1}));
  std::string file = sphere_file(data, 2);
  const std::string line = "sample_count -i 2\n";
  file.erase(file.find(line), line.size()).insert(1024 - line.size(), line.size(), ' ');
  EXPECT_EQ(read(file), std::vector<float>({0.5f, -1}));
}

TEST(AudioCodec, ReadsFlacBetweenTags) {
  for (const int count : {500, 4096, 8192, 10'000}) {
    const std::string file = flac_file(ramp(count));
    const std::vector<float> expected = scaled(ramp(count));
    for (const size_t zeros : {10, 100, 16'000}) EXPECT_EQ(read(id3_tag(zeros) + file), expected);
    for (const std::string& behind : {"TAG" + std::string(125, '\0'), std::string(100, '\0'),
                                      "APETAGEX" + std::string(24, '\1')})
      EXPECT_EQ(read(file + behind), expected) << count;
  }
}

TEST(AudioCodec, LooksForSoundBehindTagsThatAreLong) {
  const TempDir dir;
  std::string tag = id3_tag(0);
  tag.replace(6, 4, std::string("\0\7\0\0", 4)) += std::string(7 << 14, 'p');
  EXPECT_EQ(read(tag + flac_file(ramp(500))), scaled(ramp(500)));
  const std::string path = dir.write("a.mp3", tag + "\xff\xfb\x90");
  for (const std::string& said :
       {error_of([&] { read_audio(path); }), error_of([&] { read_audio_length(path); })})
    EXPECT_EQ(said, path + ": it is no FLAC, WAV or SPHERE file");
}

TEST(AudioCodec, TheNameDoesNotCount) {
  const TempDir dir;
  EXPECT_EQ(read_audio(dir.write("a.raw", flac_file(ramp(20)))).samples, scaled(ramp(20)));
}

TEST(AudioCodec, FindsFlacThatIsCutOff) {
  const std::string file = flac_file(ramp(1000));
  for (size_t size = 4; size < file.size(); size += 61)
    EXPECT_NE(complaint(file.substr(0, size)), "no error") << size;
  EXPECT_EQ(complaint(file.substr(0, file.size() / 2)),
            "it is cut off or damaged: libsndfile says 'Error : flac decoder lost sync.'");
}

TEST(AudioCodec, FindsFlacThatIsCutOffBetweenFrames) {
  const size_t frame = 8 + 1 + 2 * 192 + 2;
  EXPECT_EQ(complaint(flac_file(ramp(1000)).substr(0, 42 + 2 * frame)),
            "it is cut off or damaged: its header promises 1000 samples, 384 can be read");
}

TEST(AudioCodec, FindsDamagedFlac) {
  std::string file = flac_file(ramp(1000));
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
  EXPECT_EQ(complaint(file),
            "it is cut off or damaged: libsndfile says 'Error : flac decoder lost sync.'");
}

TEST(AudioCodec, ClaimsOfLengthTakeNoMemory) {
  EXPECT_EQ(complaint(flac_file(ramp(20), 1, 16000, (int64_t{1} << 36) - 1)),
            "it is cut off or damaged: its header promises 68719476735 samples, 20 can be read");
  const TempDir dir;
  const std::string file =
      dir.write("a.flac", flac_file(ramp(20), 1, 16000, (int64_t{1} << 36) - 1));
  EXPECT_EQ(error_of([&] { read_audio_length(file); }),
            file + ": it has 68719476735 samples, expected 268435456 at most");
}

TEST(AudioCodec, RefusesFilesWithoutSamples) {
  EXPECT_EQ(complaint(wav_file("")), "it holds no samples");
  EXPECT_EQ(complaint(flac_file({})), "it holds no samples");
  EXPECT_EQ(complaint(sphere_file("", 0)), "it holds no samples");
}

TEST(AudioCodec, RefusesSamplesThatAreNotFiniteOrMuchTooLoud) {
  const WavFormat format{.tag = 3, .bits = 32};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(complaint(wav_file(floats({0, 1, nan}), format)),
            "its sample 2 is nan, expected a number within -32768 and 32768");
  EXPECT_EQ(complaint(wav_file(floats({std::numeric_limits<float>::infinity()}), format)),
            "its sample 0 is inf, expected a number within -32768 and 32768");
  EXPECT_EQ(complaint(wav_file(floats({1e6f}), format)),
            "its sample 0 is 1e+06, expected a number within -32768 and 32768");
}

TEST(AudioCodec, RefusesHeadersThatMakeNoSense) {
  const std::string expected =
      "libsndfile cannot read it: the header is damaged, or the samples are coded in a way it does "
      "not know";
  EXPECT_EQ(complaint(wav_file(pcm16({1, 2}), {.channels = 0})), expected);
  EXPECT_EQ(complaint(wav_file(pcm16({1, 2}), {.tag = 0x1234})), expected);
  EXPECT_EQ(complaint(wav_file(pcm16({1, 2}), {.rate = 0})), expected);
}

}  // namespace
}  // namespace wisp
