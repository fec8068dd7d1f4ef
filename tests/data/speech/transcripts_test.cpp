#include "data/speech/transcripts.h"

#include <gtest/gtest.h>

#include <filesystem>

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
  const auto [read, notices] = read_transcripts(dir / "");
  EXPECT_TRUE(notices.empty());
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].id, "19-b-0001");
  EXPECT_EQ(read[0].speaker, "19");
  EXPECT_EQ(read[1].audio, dir / "19/b/19-b-0002.wav");
  EXPECT_EQ(read[1].text, "NO LONGER");
  EXPECT_EQ(read[2].speaker, "fcaw");
  EXPECT_EQ(read[2].audio, dir / "fcaw/an1.sph");
}

TEST(Transcripts, AreReadThroughLinksUnderTheNamesOfThese) {
  const TempDir dir;
  for (const std::string& speaker : {std::string("11"), std::string("elsewhere/22")}) {
    const std::string id = speaker.substr(speaker.size() - 2);
    dir.write("all/" + speaker + "/1/a.trans.txt", id + "-1 WORDS\n");
    dir.write("all/" + speaker + "/1/" + id + "-1.flac", "");
  }
  std::filesystem::create_directory(dir / "corpus");
  std::filesystem::create_directory_symlink("../all/11", dir / "corpus/11");
  std::filesystem::create_directory_symlink("../all/elsewhere/22", dir / "corpus/22");
  const auto [read, notices] = read_transcripts(dir / "corpus");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].id, "22-1");
  EXPECT_EQ(read[1].speaker, "22");
  EXPECT_EQ(read[1].audio, dir / "corpus/22/1/22-1.flac");
  EXPECT_TRUE(notices.empty());
}

TEST(Transcripts, TellWhatIsNoPartOfThem) {
  const TempDir dir;
  dir.write("s/x.trans.txt", "\xef\xbb\xbfu1 WORDS\n");
  dir.write("s/._x.trans.txt", std::string(4, '\0'));
  for (const char* name : {"s/u1.flac", "s/u1.wav", "s/u2.wav", "s/u3.sph", "s/README"})
    dir.write(name, "");
  const auto [read, notices] = read_transcripts(dir.path());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].id, "u1");
  EXPECT_EQ(
      notices,
      (std::vector<std::string>{
          dir.path() + ": 1 files of macOS (._…, __MACOSX) were skipped, such as s/._x.trans.txt",
          dir.path() + ": 2 sounds without a transcript were skipped, such as s/u2.wav"}));
}

TEST(Transcripts, AreNotReadFromHiddenFolders) {
  const TempDir dir;
  for (const char* folder : {"s/", "s/.ipynb_checkpoints/", ".Trash-1000/s/", "@eaDir/s/"}) {
    dir.write(folder + std::string("x.trans.txt"), "u1 WORDS\n");
    dir.write(folder + std::string("u1.flac"), "");
  }
  const auto [read, notices] = read_transcripts(dir.path());
  EXPECT_EQ(read.size(), 1u);
  EXPECT_EQ(notices.size(), 2u);
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
  EXPECT_EQ(error(), path + ": byte 3, in line 1, is no UTF-8");
}

}  // namespace
}  // namespace wisp
