#include "data/speech/audio_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(AudioFile, ErrorsNameThePath) {
  const TempDir dir;
  const std::string none = dir / "none.wav", text = dir.write("a.wav", "some text");
  EXPECT_EQ(error_of([&] { read_audio(none); }), none + ": there is no such file");
  EXPECT_EQ(error_of([&] { read_audio(text); }), text + ": it is no FLAC, WAV or SPHERE file");
  EXPECT_EQ(error_of([&] { read_audio(none, RawPcm{}); }), none + ": there is no such file");
}

TEST(AudioFile, ReadsSamplesWithoutAHeader) {
  const TempDir dir;
  const std::string file = dir.write("a.raw", pcm16({0, 16384, -32768, 32767}));
  const Audio audio = read_audio(file, RawPcm{.rate = 8000});
  EXPECT_EQ(audio.rate, 8000);
  EXPECT_EQ(audio.samples, std::vector<float>({0, 0.5f, -1, 32767.0f / 32768}));
}

TEST(AudioFile, ReadsHighBytesFirstAndAveragesChannels) {
  const TempDir dir;
  const std::string file = dir.write("a.raw", big_endian(0x4000, 2) + big_endian(0xe000, 2));
  EXPECT_EQ(read_audio(file, RawPcm{.big_endian = true}).samples,
            std::vector<float>({0.5f, -0.25f}));
  EXPECT_EQ(read_audio(file, RawPcm{.channels = 2, .big_endian = true}).samples,
            std::vector<float>({0.125f}));
}

TEST(AudioFile, RefusesBytesThatAreNoWholeSamples) {
  const TempDir dir;
  const std::string odd = dir.write("odd", "123456"), empty = dir.write("empty", "");
  EXPECT_EQ(error_of([&] { read_audio(odd, RawPcm{.channels = 2}); }),
            odd + ": it has 6 bytes, expected a multiple of 4: 2 for each of 2 channels");
  EXPECT_EQ(error_of([&] { read_audio(empty, RawPcm{}); }), empty + ": it is empty");
  EXPECT_EQ(error_of([&] { read_audio(odd, RawPcm{.channels = 0}); }),
            odd + ": 0 channels at a rate of 16000, expected 1 to 1024 and more than 0");
}

TEST(AudioFile, TellsNoLengthOfWhatItWouldNotRead) {
  const TempDir dir;
  const auto complaint = [](const std::string& path) {
    return error_of([&] { read_audio_length(path); });
  };
  const std::string sound = dir.write("a.au", ".snd" + big_endian(24, 4) + big_endian(2, 4));
  EXPECT_EQ(complaint(sound), sound + ": it is no FLAC, WAV or SPHERE file");
  const std::string cut = dir.write("cut.wav", wav_file(pcm16({1, 2, 3})).substr(0, 48));
  EXPECT_EQ(complaint(cut),
            cut + ": it is cut off: its header promises 6 bytes of samples, 4 are there");
  const std::string short_sphere =
      dir.write("a.sph", sphere_file("", 2, "pcm,embedded-shorten-v2.00"));
  EXPECT_EQ(complaint(short_sphere),
            short_sphere +
                ": it is a SPHERE file that shorten compressed, expected one of plain samples, as "
                "sph2pipe makes of it");
  EXPECT_EQ(complaint(dir.path()), dir.path() + ": it is no file, but a directory");
  ASSERT_EQ(mkfifo((dir / "pipe.wav").c_str(), 0600), 0);
  EXPECT_EQ(complaint(dir / "pipe.wav"), dir / "pipe.wav: it is no file, but a pipe");
}

TEST(AudioFile, TellsTheLengthOfSamplesWithoutAHeader) {
  const TempDir dir;
  const std::string file = dir.write("a.raw", "12345678"), empty = dir.write("empty", "");
  const AudioLength length = read_audio_length(file, RawPcm{.rate = 8000, .channels = 2});
  EXPECT_EQ(length.samples, 2);
  EXPECT_EQ(length.rate, 8000);
  EXPECT_EQ(error_of([&] { read_audio_length(file, RawPcm{.channels = 3}); }),
            file + ": it has 8 bytes, expected a multiple of 6: 2 for each of 3 channels");
  EXPECT_EQ(error_of([&] { read_audio_length(empty, RawPcm{}); }), empty + ": it is empty");
  EXPECT_EQ(error_of([&] { read_audio_length(dir.path(), RawPcm{}); }),
            dir.path() + ": it is no file, but a directory");
}

}  // namespace
}  // namespace wisp
