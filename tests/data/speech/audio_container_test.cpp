#include "data/speech/audio_container.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"

namespace wisp {
namespace {

using namespace std::string_literals;

std::string container_complaint(const std::string& bytes) {
  return error_of([&] { check_audio_container(bytes, std::ssize(bytes)); });
}

TEST(AudioContainer, KnowsFlacWavAndSphere) {
  EXPECT_EQ(container_complaint(flac_file({1, 2, 3})), "no error");
  EXPECT_EQ(container_complaint(wav_file(pcm16({1, 2, 3}))), "no error");
  EXPECT_EQ(container_complaint(sphere_file(pcm16({1, 2, 3}), 3)), "no error");
  EXPECT_EQ(container_complaint(rf64_file(pcm16({1, 2, 3}), 6)), "no error");
  EXPECT_EQ(container_complaint(rifx_file(pcm16({1, 2, 3}))), "no error");
}

TEST(AudioContainer, FindsTheEndOfATagInFront) {
  for (const size_t zeros : {0, 100, 5000}) {
    const std::string tag = id3_tag(zeros);
    EXPECT_EQ(tag_bytes(tag + flac_file({1, 2})), std::ssize(tag));
  }
  std::string footed = id3_tag(100);
  footed[5] = 0x10;
  EXPECT_EQ(tag_bytes(footed), 120);
  EXPECT_EQ(tag_bytes(flac_file({1, 2})), 0);
  EXPECT_EQ(tag_bytes("ID3"), 0);
}

TEST(AudioContainer, TakesSizesThatWereNotKnownForAllThatIsThere) {
  const std::string file = wav_file(pcm16({1, 2}));
  const auto of_size = [&](uint64_t size, uint64_t riff) {
    std::string open = file;
    open.replace(4, 4, little_endian(riff, 4)).replace(40, 4, little_endian(size, 4));
    return check_audio_container(open, std::ssize(open));
  };
  for (const uint64_t size : {0xffffffffu, 0xffffffdbu, 0x80000000u, 0x7fffffd3u, 0x7ffff000u})
    EXPECT_EQ(of_size(size, size), 0u) << "libsndfile does so, too";
  EXPECT_EQ(of_size(0, 0), 40u);
  EXPECT_EQ(of_size(0, 36), 40u);
  EXPECT_EQ(of_size(0, 40), 0u) << "the file ends where it says: there are none";
  const std::string rf64 = rf64_file(pcm16({1, 2}), 0);
  EXPECT_EQ(check_audio_container(rf64, std::ssize(rf64)), 28u);
}

TEST(AudioContainer, FindsAnRf64OrRifxThatIsCutOff) {
  EXPECT_EQ(container_complaint(rf64_file(pcm16({1, 2}), 5'000'000'000)),
            "it is cut off: its header promises 5000000000 bytes of samples, 4 are there");
  const std::string rifx = rifx_file(pcm16({1, 2}));
  EXPECT_EQ(container_complaint(rifx.substr(0, rifx.size() - 1)),
            "it is cut off: its header promises 4 bytes of samples, 3 are there");
}

TEST(AudioContainer, RefusesWhatIsNoSound) {
  const std::string expected = "it is no FLAC, WAV or SPHERE file";
  EXPECT_EQ(container_complaint(""), "it is empty");
  EXPECT_EQ(container_complaint("some text"), expected);
  EXPECT_EQ(container_complaint("RIFF"), expected);
  EXPECT_EQ(container_complaint("RIFF\0\0\0\0WEBP"s), expected);
}

TEST(AudioContainer, SkipsChunksInFrontOfTheSamples) {
  std::string file = wav_file(pcm16({1, 2}));
  file.insert(12, "LIST" + little_endian(3, 4) + "abc\0"s);
  EXPECT_EQ(container_complaint(file), "no error");
  EXPECT_EQ(container_complaint(file.substr(0, file.size() - 1)),
            "it is cut off: its header promises 4 bytes of samples, 3 are there");
}

TEST(AudioContainer, NeedsOnlyWhatTheFileBeginsWith) {
  const auto of_head = [](const std::string& head, int64_t bytes) {
    return error_of([&] { check_audio_container(head, bytes); });
  };
  const std::string wav = wav_file(pcm16({1, 2})), sphere = sphere_file(pcm16({1, 2}), 2);
  EXPECT_EQ(of_head(wav.substr(0, 44), 48), "no error");
  EXPECT_EQ(of_head(wav.substr(0, 44), 47),
            "it is cut off: its header promises 4 bytes of samples, 3 are there");
  EXPECT_EQ(of_head(sphere.substr(0, 1024), 1027),
            "it is cut off: its header promises 4 bytes of samples, 3 are there");
  std::string pictures = wav;
  pictures.insert(12, "LIST" + little_endian(1000, 4) + std::string(1000, 'p'));
  EXPECT_EQ(of_head(pictures.substr(0, 100), std::ssize(pictures)), "no error")
      << "the samples begin behind the head";
  EXPECT_EQ(of_head(pictures.substr(0, 100), 1000), "it is cut off: a WAV file without samples");
}

TEST(AudioContainer, FindsAWavThatIsCutOff) {
  const std::string file = wav_file(pcm16({1, 2}));
  for (size_t size = 12; size < 44; ++size)
    EXPECT_EQ(container_complaint(file.substr(0, size)),
              "it is cut off: a WAV file without samples")
        << size;
  EXPECT_EQ(container_complaint(file.substr(0, 44)),
            "it is cut off: its header promises 4 bytes of samples, 0 are there");
  std::string absurd = file;
  absurd.replace(40, 4, "\xff\xff\xff\xdf");
  EXPECT_EQ(container_complaint(absurd),
            "it is cut off: its header promises 3758096383 bytes of samples, 4 are there");
}

TEST(AudioContainer, FindsASphereFileThatIsCutOff) {
  const std::string file = sphere_file(pcm16({1, 2}), 2);
  EXPECT_EQ(container_complaint(file.substr(0, file.size() - 1)),
            "it is cut off: its header promises 4 bytes of samples, 3 are there");
  EXPECT_EQ(container_complaint(file.substr(0, 200)),
            "it is cut off: its SPHERE header has 1024 bytes, the file 200");
  EXPECT_EQ(container_complaint("NIST_1A\n"),
            "it is cut off: its SPHERE header has 0 bytes, the file 8");
  EXPECT_EQ(container_complaint(sphere_file("", 4'000'000'000)),
            "it is cut off: its header promises 8000000000 bytes of samples, 0 are there");
}

TEST(AudioContainer, RefusesSphereHeadersThatItCannotRead) {
  std::string file = sphere_file("", 2);
  file.replace(file.find("sample_count -i 2"), 17, "sample_count -i x");
  EXPECT_EQ(container_complaint(file),
            "its SPHERE header has 'x' for sample_count, expected a number");
  EXPECT_EQ(container_complaint(sphere_file("", 2, "pcm,embedded-shorten-v2.00")),
            "it is a SPHERE file that shorten compressed, expected one of plain samples, as "
            "sph2pipe makes of it");
}

}  // namespace
}  // namespace wisp
