#include "core/io/output_file.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(OutputFile, ReplacesOrAppends) {
  const TempDir dir;
  const std::string path = dir.write("a", "old");
  OutputFile(path, OutputFile::Mode::append).write(" and more");
  EXPECT_EQ(read_text(path), "old and more");
  OutputFile file(path, OutputFile::Mode::replace);
  file.write("new");
  EXPECT_EQ(read_text(path), "new");  // seen before the file is closed
  EXPECT_NO_THROW(file.sync());
}

TEST(OutputFile, FailuresHaveThePathAndTheCause) {
  const TempDir dir;
  const std::string file = dir.write("file", "");
  EXPECT_EQ(error_of([&] { OutputFile(file + "/x", OutputFile::Mode::replace); }),
            file + "/x: cannot be opened for writing: Not a directory");
  OutputFile full("/dev/full", OutputFile::Mode::append);
  EXPECT_EQ(error_of([&] { full.write("x"); }),
            "/dev/full: cannot be written: No space left on device");
  EXPECT_EQ(error_of([&] { sync_directory(dir / "none"); }),
            (dir / "none") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_of([&] { rename_path(dir / "a", dir / "b"); }),
            (dir / "a") + ": cannot be renamed to " + (dir / "b") + ": No such file or directory");
}

TEST(OutputFile, AFileIsReplacedAsAWhole) {
  const TempDir dir;
  const std::string path = dir.write("a", "old and longer");
  write_file(path, "new");
  EXPECT_EQ(read_text(path), "new");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  EXPECT_EQ(error_of([&] { write_file(dir / "none/a", "x"); }),
            (dir / "none/a.tmp") + ": cannot be opened for writing: No such file or directory");
}

TEST(OutputFile, ParentDirectories) {
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("/a"), "/");
}

}  // namespace
}  // namespace wisp
