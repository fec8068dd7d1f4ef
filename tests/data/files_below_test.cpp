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
    EXPECT_TRUE(below.notices.empty());
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
  EXPECT_EQ(below.notices,
            (std::vector<std::string>{
                folder + ": 2 links to nothing were skipped, such as gone",
                folder + ": 1 links to a folder above them were skipped, such as a/up",
                folder + ": 2 files of macOS (._…) were skipped, such as a/._1"}));
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
