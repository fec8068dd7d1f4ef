#include "core/io/input_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <future>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// A socket with a name in a folder.
class SocketFile {
 public:
  explicit SocketFile(const std::string& path) {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  }
  ~SocketFile() { close(descriptor_); }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

 private:
  const int descriptor_ = socket(AF_UNIX, SOCK_STREAM, 0);
};

TEST(InputFile, IsReadWhole) {
  const TempDir dir;
  const std::string bytes("a\0\r\n\xff", 5);
  EXPECT_EQ(read_whole_file(dir.write("a", bytes), 5), bytes);
  EXPECT_EQ(read_whole_file(dir.write("empty", ""), 5), "");
}

TEST(InputFile, IsReadFromItsBeginning) {
  const TempDir dir;
  const std::string file = dir.write("a", "12345");
  EXPECT_EQ(read_head(file, 3), "123");
  EXPECT_EQ(read_head(file, 9), "12345");
  EXPECT_EQ(file_bytes(file), 5);
}

TEST(InputFile, OfTheSystemIsReadThoughItsSizeIsZero) {
  EXPECT_EQ(file_bytes("/proc/self/status"), 0);
  EXPECT_TRUE(read_whole_file("/proc/self/status", 1 << 20).starts_with("Name:"));
  EXPECT_TRUE(read_utf8("/proc/self/status").starts_with("Name:"));
  EXPECT_EQ(error_of([] { read_whole_file("/proc/self/status", 10); }),
            "it has more than 10 bytes, which are the most that are read");
}

TEST(InputFile, IsNoPipeDeviceSocketOrFolder) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);  // nobody writes to it
  std::filesystem::create_symlink("pipe", dir / "link to the pipe");
  std::filesystem::create_symlink("/dev/zero", dir / "link to a device");
  const SocketFile socket(dir / "socket");
  for (const auto& [path, kind] :
       std::vector<std::pair<std::string, std::string>>{{dir / "pipe", "a pipe"},
                                                        {dir / "link to the pipe", "a pipe"},
                                                        {dir / "link to a device", "a device"},
                                                        {"/dev/null", "a device"},
                                                        {dir / "socket", "a socket or a device"},
                                                        {dir.path(), "a directory"}}) {
    SCOPED_TRACE(path);
    const std::string refusal = "it is no file, but " + kind;
    EXPECT_EQ(error_of([&] { file_bytes(path); }), refusal);
    EXPECT_EQ(error_of([&] { read_head(path, 4); }), refusal);
    EXPECT_EQ(error_of([&] { read_whole_file(path, 4); }), refusal);
    EXPECT_EQ(error_of([&] { read_utf8(path); }), refusal);
    EXPECT_EQ(error_of([&] { const InputLines lines(path); }), path + ": " + refusal);
    EXPECT_EQ(error_of([&] { const RandomAccessFile file(path); }), path + ": " + refusal);
  }
}

TEST(InputFile, ThatAUserGivesMayBeAPipeThatIsOpen) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const std::string path = concat("/dev/fd/", ends[0]);
  EXPECT_EQ(error_of([&] { read_utf8(path); }), "it is no file, but a pipe");
  std::future<std::string> text =
      std::async([&] { return read_utf8(path, Input::file_or_pipe); });  // waits for what comes
  EXPECT_EQ(write(ends[1], "one ", 4), 4);
  EXPECT_EQ(write(ends[1], "two", 3), 3);
  close(ends[1]);
  EXPECT_EQ(text.get(), "one two");
  close(ends[0]);
}

TEST(InputFile, ThatAUserGivesIsNoPipeWithoutAWriter) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {dir / "pipe", dir.path()})
    EXPECT_EQ(error_of([&] { read_utf8(path, Input::file_or_pipe); }).find("it is no file, but a"),
              0u);
  EXPECT_EQ(read_utf8("/dev/null", Input::file_or_pipe), "");
}

TEST(InputFile, WithoutAnEndIsReadUpToABound) {
  EXPECT_EQ(error_of([] { read_whole_file("/dev/zero", 100'000, Input::file_or_pipe); }),
            "it has more than 100000 bytes, which are the most that are read");
  EXPECT_EQ(error_of([] { read_utf8("/dev/zero", Input::file_or_pipe); }),
            "line 1 has a byte of zero, expected text");
}

TEST(InputFile, ThatClaimsASizeIsNotBelieved) {
  const TempDir dir;
  const std::string path = dir.write("sparse", "a\n");
  std::filesystem::resize_file(path, int64_t{1} << 40);  // takes no room on the disk
  EXPECT_EQ(error_of([&] { read_whole_file(path, 1000); }),
            "it has 1099511627776 bytes, expected 1000 at most");
  EXPECT_EQ(error_of([&] { read_utf8(path); }),
            "it has 1099511627776 bytes, expected 68719476736 at most");
  std::filesystem::resize_file(path, int64_t{1} << 24);
  EXPECT_EQ(error_of([&] { read_utf8(path); }), "line 2 has a byte of zero, expected text");
}

TEST(InputFile, OfTextLosesItsMark) {
  const TempDir dir;
  EXPECT_EQ(read_utf8(dir.write("a",
                                "\xef\xbb\xbf"
                                "a b")),
            "a b");
  EXPECT_EQ(read_utf8(dir.write("empty", "")), "");
  EXPECT_EQ(error_of([&] {
              read_utf8(dir.write("b",
                                  "\xef\xbb\xbf"
                                  "a\n\xff"));
            }),
            "byte 5, in line 2, is no UTF-8");
  EXPECT_EQ(error_of([&] { read_utf8(dir / "none"); }), "there is no such file");
}

TEST(InputFile, OfTextHasNoByteOfZero) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { read_utf8(dir.write("a", std::string("a\nb\0c\n", 6))); }),
            "line 2 has a byte of zero, expected text");
}

TEST(InputFile, IsNamedInErrors) {
  EXPECT_EQ(naming("a.txt", [] { return 2; }), 2);
  EXPECT_EQ(error_of([] { naming("a.txt:3", [] { throw Error("too long"); }); }),
            "a.txt:3: too long");
}

TEST(InputFile, SaysWhyItCannotBeRead) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { read_whole_file(dir / "none", 1); }), "there is no such file");
  EXPECT_EQ(error_of([&] { read_whole_file(dir.path(), 1); }), "it is no file, but a directory");
  const std::string file = dir.write("a", "12345");
  EXPECT_EQ(error_of([&] { read_whole_file(file, 4); }), "it has 5 bytes, expected 4 at most");
}

std::vector<std::string> lines_of(InputLines lines) {
  std::vector<std::string> all;
  while (const auto line = lines.next()) all.push_back(concat(lines.number(), ":", *line));
  return all;
}

TEST(InputLines, AreReadOneAfterTheOther) {
  const TempDir dir;
  const std::string blocks(100'000, 'x');  // longer than what is read at once
  EXPECT_EQ(lines_of(InputLines(dir.write("a", "one\n\n" + blocks + "\nend"))),
            (std::vector<std::string>{"1:one", "2:", "3:" + blocks, "4:end"}));
  EXPECT_TRUE(lines_of(InputLines(dir.write("empty", ""))).empty());
  InputLines lines(dir.write("b", "one\ntwo"));
  lines.next();
  EXPECT_FALSE(lines.cut_off());
  lines.next();
  EXPECT_TRUE(lines.cut_off());
  EXPECT_EQ(lines.next(), std::nullopt);
  EXPECT_EQ(lines.number(), 2);
}

TEST(InputLines, HaveABound) {
  const TempDir dir;
  const std::string path = dir.write("a", "12345\n123456\n");
  EXPECT_EQ(error_of([&] { lines_of(InputLines(path, 5)); }),
            path + ":2: a line of more than 5 bytes, expected shorter ones");
  EXPECT_EQ(lines_of(InputLines(path, 6)).size(), 2u);
  EXPECT_EQ(error_of([] { lines_of(InputLines("/dev/zero", 100'000, Input::file_or_pipe)); }),
            "/dev/zero:1: a line of more than 100000 bytes, expected shorter ones");
}

TEST(RandomAccessFile, IsReadFromAnyPlace) {
  const TempDir dir;
  RandomAccessFile opened(dir.write("file", "0123456789"));
  const RandomAccessFile file(std::move(opened));  // the path and the descriptor move
  EXPECT_EQ(file.bytes(), 10);
  EXPECT_EQ(file.path(), dir / "file");
  std::string part(3, ' ');
  for (const int64_t offset : {7, 0, 4}) {
    file.read(part.data(), 3, offset);
    EXPECT_EQ(part, std::string("0123456789").substr(static_cast<size_t>(offset), 3));
  }
  file.read(part.data(), 0, 10);
}

TEST(RandomAccessFile, NamesWhatIsMissing) {
  const TempDir dir;
  const RandomAccessFile file(dir.write("file", "0123456789"));
  std::string part(4, ' ');
  EXPECT_EQ(error_of([&] { file.read(part.data(), 4, 8); }),
            dir / "file: ends at byte 10, 2 bytes early");
  EXPECT_EQ(error_of([&] { const RandomAccessFile missing(dir / "none"); }),
            dir / "none: there is no such file");
}

}  // namespace
}  // namespace wisp
