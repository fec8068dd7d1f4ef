#include "data/files_below.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names(const FilesBelow& below, const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::path& file : below.files)
    names.push_back(file.lexically_relative(folder).string());
  return names;
}

TEST(FilesBelow, AreReachedThroughLinks) {
  const TempDir dir;
  dir.write("corpus/b/2", "");
  dir.write("elsewhere/deep/3", "");
  dir.write("4", "");
  fs::create_directory_symlink(dir / "elsewhere", dir / "corpus/a");
  fs::create_symlink("../../4", dir / "corpus/b/1");
  for (const std::string& folder : {dir / "corpus", dir / "corpus/"}) {
    const FilesBelow below = files_below(folder);
    EXPECT_EQ(names(below, folder), (std::vector<std::string>{"a/deep/3", "b/1", "b/2"}));
    EXPECT_TRUE(below.skipped.notices(folder).empty());
  }
}

TEST(FilesBelow, TellWhatWasPassedOver) {
  const TempDir dir;
  dir.write("corpus/a/1", "");
  dir.write("corpus/a/._1", "");
  dir.write("corpus/a/._2", "");
  fs::create_directory_symlink("..", dir / "corpus/a/up");
  fs::create_symlink("nothing", dir / "corpus/gone");
  fs::create_symlink("itself", dir / "corpus/itself");
  const std::string folder = dir / "corpus";
  const FilesBelow below = files_below(folder);
  EXPECT_EQ(names(below, folder), std::vector<std::string>{"a/1"});
  EXPECT_EQ(below.skipped.notices(folder),
            (std::vector<std::string>{
                folder + ": 2 files of macOS (._…, __MACOSX) were skipped, such as a/._1",
                folder + ": 1 links to a folder above them were skipped, such as a/up",
                folder + ": 2 links to nothing were skipped, such as gone"}));
}

/// Others' files, beside the folder, would be found in it.
TEST(FilesBelow, AreNotReachedThroughAFolderAbove) {
  const TempDir dir;
  dir.write("corpus/a/1", "");
  dir.write("corpus/b/2", "");
  fs::create_directory_symlink("..", dir / "corpus/a/up");
  fs::create_directory_symlink("../..", dir / "corpus/a/higher");
  ASSERT_EQ(mkfifo((dir / "corpus/a/pipe").c_str(), 0600), 0);
  const std::string folder = dir / "corpus/a";
  const FilesBelow below = files_below(folder);
  EXPECT_EQ(names(below, folder), std::vector<std::string>{"1"});
  const std::vector<std::string> notices = below.skipped.notices(folder);
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_NE(notices[0].find("2 links to a folder above them"), std::string::npos) << notices[0];
  EXPECT_NE(notices[1].find("1 pipes, sockets and devices"), std::string::npos) << notices[1];
}

TEST(FilesBelow, AreNeverInHiddenFolders) {
  const TempDir dir;
  for (const char* path : {"a/1", "a/deep/2", ".git/3", "a/.ipynb_checkpoints/1-checkpoint",
                           "a/deep/.@__thumb/4", "a/.5", "a/@eaDir/1/thumb", "lost+found/6",
                           "a/deep/#recycle/7", "__MACOSX/a/._1", "a/__MACOSX/8", "a@eaDir/9"})
    dir.write(std::string("corpus/") + path, "");
  fs::create_symlink("nothing", dir / "corpus/.gone");
  fs::create_directory_symlink("..", dir / "corpus/a/.up");
  const std::string folder = dir / "corpus";
  const FilesBelow below = files_below(folder);
  EXPECT_EQ(names(below, folder), (std::vector<std::string>{"a/1", "a/deep/2", "a@eaDir/9"}));
  EXPECT_EQ(below.skipped.notices(folder),
            (std::vector<std::string>{
                folder + ": 3 files and folders of a system (@eaDir, lost+found, …) were skipped, "
                         "such as a/@eaDir",
                folder + ": 2 files of macOS (._…, __MACOSX) were skipped, such as __MACOSX",
                folder + ": 6 hidden files and folders were skipped, such as .git"}));
  EXPECT_EQ(files_below(dir / "corpus/.git").files.size(), 1u) << "a folder that the user names";
}

/// Runs as another user while it lives, because root may read all folders.
class AsNobody {
 public:
  AsNobody() { EXPECT_EQ(geteuid() == 0 ? seteuid(65534) : 0, 0); }
  ~AsNobody() { EXPECT_EQ(seteuid(getuid()), 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
};

TEST(FilesBelow, NameTheFolderThatCannotBeRead) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { files_below(dir / "none"); }), dir / "none" + ": no such folder");
  EXPECT_EQ(error_of([&] { files_below(dir.write("file", "")); }),
            dir / "file" + ": no such folder");
  dir.write("corpus/a/1", "");
  const std::string closed = dir / "corpus/a";
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(closed, fs::perms::none);
  {
    const AsNobody nobody;
    for (const std::string& folder : {dir / "corpus", closed})
      EXPECT_EQ(error_of([&] { files_below(folder); }),
                closed + ": cannot be read: Permission denied");
  }
  fs::permissions(closed, fs::perms(0755));
}

}  // namespace
}  // namespace wisp
