#include "data/speech/transcripts.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(Transcripts, AreReadWithSpeakersAndAudio) {
  const TempDir dir;
  dir.write("19/b/19-b.trans.txt", "19-b-0001 HE COULD WAIT\r\n\n19-b-0002 NO LONGER\n");
  dir.write("19/b/19-b-0001.flac", "");
  dir.write("19/b/19-b-0002.wav", "");
  dir.write("fcaw/fcaw.trans.txt", "an1 YES");
  dir.write("fcaw/an1.sph", "");
  const std::vector<Utterance> read = read_transcripts(dir / "");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].id, "19-b-0001");
  EXPECT_EQ(read[0].speaker, "19");
  EXPECT_EQ(read[1].audio, dir / "19/b/19-b-0002.wav");
  EXPECT_EQ(read[1].text, "NO LONGER");
  EXPECT_EQ(read[2].speaker, "fcaw");
  EXPECT_EQ(read[2].audio, dir / "fcaw/an1.sph");
}

TEST(Transcripts, SayWhereTheyAreDamaged) {
  const TempDir dir;
  const auto error = [&] { return error_of([&] { read_transcripts(dir / "a"); }); };
  EXPECT_EQ(error(), dir / "a" + ": no such folder");
  const std::string path = dir.write("a/s/x.trans.txt", "");
  EXPECT_EQ(error(), dir / "a" + ": no utterances, expected files *.trans.txt in it");
  dir.write("a/s/x.trans.txt", "u1 WORDS\n");
  EXPECT_EQ(error(), path + ":1: there is no u1.flac, .wav, .sph or .raw beside it");
  dir.write("a/s/u1.flac", "");
  dir.write("a/s/x.trans.txt", "u1 WORDS\nu2 \n");
  EXPECT_EQ(error(), path + ":2: expected \"ID WORDS\"");
  dir.write("a/s/x.trans.txt", "u1 WORDS\nu1 AGAIN\n");
  EXPECT_EQ(error(), path + ":2: u1 is there twice");
  dir.write("a/s/x.trans.txt", "u1 \xff\n");
  EXPECT_EQ(error(), path + ":1: byte 3, in line 1, is no UTF-8");
}

}  // namespace
}  // namespace wisp
