#include "core/io/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

int64_t entries(const TempDir& dir) {
  return std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator());
}

TEST(OutputFile, ReplacesOrAppends) {
  const TempDir dir;
  const std::string path = dir.write("a", "old");
  OutputFile(path, OutputFile::Mode::append).write(" and more");
  EXPECT_EQ(read_text(path), "old and more");
  OutputFile file(path, OutputFile::Mode::replace);
  file.write("new");
  EXPECT_EQ(read_text(path), "new");  // readable before the file is closed
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

TEST(WholeFile, IsTheOldOneUntilItIsFinished) {
  const TempDir dir;
  const std::string path = dir.write("a", "old and longer");
  {
    WholeFile file(path);
    file.write("n_w");
    file.write_at(1, "e");
    EXPECT_EQ(read_text(path), "old and longer");
    file.finish();
    EXPECT_EQ(read_text(path), "new");
  }
  { WholeFile(path).write("given up"); }
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(entries(dir), 1);
}

TEST(WholeFile, FailuresHaveThePathAndLeaveNothing) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { write_file(dir / "none/a", "x"); }),
            (dir / "none/a") + ": cannot be opened for writing: No such file or directory");
  EXPECT_EQ(error_of([&] { write_file(dir.path(), "x"); }),
            dir.path() + ": cannot be opened for writing: Is a directory");
  fs::create_symlink("loop", dir / "loop");
  EXPECT_EQ(error_of([&] { write_file(dir / "loop", "x"); }),
            (dir / "loop") + ": cannot be opened for writing: Too many levels of symbolic links");
  EXPECT_EQ(error_of([] { write_file("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
  const std::string path = dir.write("a", "old");
  const FileSizeLimit limit(4);
  EXPECT_EQ(error_of([&] { write_file(path, "longer"); }),
            path + ": cannot be written: File too large");
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(entries(dir), 2);
}

TEST(WholeFile, FollowsLinks) {
  const TempDir dir;
  fs::create_directory(dir / "folder");
  dir.write("folder/real", "old");
  fs::create_symlink("folder/real", dir / "relative");
  fs::create_symlink(dir / "relative", dir / "link");
  write_file(dir / "link", "new");
  EXPECT_EQ(read_text(dir / "folder/real"), "new");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_TRUE(fs::is_symlink(dir / "relative"));
  fs::create_symlink("folder/absent", dir / "dangling");
  write_file(dir / "dangling", "made");
  EXPECT_EQ(read_text(dir / "folder/absent"), "made");
}

TEST(WholeFile, KeepsTheMode) {
  const TempDir dir;
  const std::string path = dir.write("a", "old");
  fs::permissions(path, fs::perms(0640));
  write_file(path, "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  const mode_t mask = umask(027);
  write_file(dir / "b", "new");
  umask(mask);
  EXPECT_EQ(fs::status(dir / "b").permissions(), fs::perms(0640)) << "as the mask says";
}

TEST(WholeFile, IsOverwrittenWhereNothingMayBeMade) {
  const TempDir dir;
  const std::string path = dir.write("folder/a", "old and longer");
  const uid_t user = geteuid();
  if (user == 0) {  // root ignores permissions
    ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
    ASSERT_EQ(chmod(path.c_str(), 0666), 0);
    ASSERT_EQ(seteuid(65534), 0);
  } else {
    ASSERT_EQ(chmod((dir / "folder").c_str(), 0555), 0);
  }
  const std::string error = error_of([&] { write_file(path, "new"); });
  const std::string other = error_of([&] { write_file(dir / "folder/b", "new"); });
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  ASSERT_EQ(chmod((dir / "folder").c_str(), 0755), 0);
  EXPECT_EQ(error, "no error");
  EXPECT_EQ(other, (dir / "folder/b") + ": cannot be opened for writing: Permission denied");
  EXPECT_EQ(read_text(path), "new");
}

TEST(WholeFile, ADeviceStaysOne) {
  const TempDir dir;
  const std::string path = dir / "null";
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  fs::create_symlink("null", dir / "link");
  write_file(path, "x");
  write_file(dir / "link", "x");
  EXPECT_TRUE(fs::is_character_file(path));
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(entries(dir), 2);
}

TEST(WholeFile, IsWrittenThroughAPipe) {
  const TempDir dir;
  const std::string path = dir / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::future<std::string> read = std::async([&] { return read_text(path); });
  {
    WholeFile file(path, Unread::awaited);
    file.write_at(2, "cd");
    file.write_at(0, "ab");
    file.finish();
  }
  EXPECT_EQ(read.get(), "abcd");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(OutputFile, DoesNotWaitForAPipesReader) {
  const TempDir dir;
  const std::string path = dir / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string refusal =
      path + ": cannot be opened for writing: it is a pipe or a socket that nobody reads";
  EXPECT_EQ(error_of([&] { write_file(path, "x"); }), refusal);
  for (const auto mode :
       {OutputFile::Mode::append, OutputFile::Mode::replace, OutputFile::Mode::keep})
    EXPECT_EQ(error_of([&] { OutputFile(path, mode); }), refusal);

  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(path, "read");
  std::string got(4, ' ');
  EXPECT_EQ(read(reader, got.data(), got.size()), 4);
  EXPECT_EQ(got, "read");
  OutputFile file(path, OutputFile::Mode::append);
  EXPECT_EQ(fcntl(file.descriptor(), F_GETFL) & O_NONBLOCK, 0) << "a full pipe is waited for";
  close(reader);
}

TEST(WholeFile, WritesToWhatIsOpen) {
  const TempDir dir;
  const std::string path = dir.write("a", "begin, ");
  const int open_file = open(path.c_str(), O_WRONLY | O_APPEND);
  write_file(concat("/dev/fd/", open_file), "middle, ");
  EXPECT_EQ(write(open_file, "end", 3), 3);
  close(open_file);
  EXPECT_EQ(read_text(path), "begin, middle, end");
  EXPECT_EQ(error_of([] { write_file("/dev/fd/999999", "x"); }),
            "/dev/fd/999999: cannot be opened for writing: Bad file descriptor");
}

TEST(WholeFile, TwoWritersGiveOneOrTheOther) {
  const TempDir dir;
  const std::string path = dir / "a", texts[] = {std::string(1000, 'a'), std::string(2000, 'b')};
  {
    std::vector<std::jthread> threads;
    for (const std::string& text : texts)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) write_file(path, text);
      });
  }
  const std::string last = read_text(path);
  EXPECT_TRUE(last == texts[0] || last == texts[1]);
  EXPECT_EQ(entries(dir), 1);
}

TEST(OutputFile, ParentDirectories) {
  EXPECT_EQ(parent_directory("a/b"), "a");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("/a"), "/");
}

}  // namespace
}  // namespace wisp
