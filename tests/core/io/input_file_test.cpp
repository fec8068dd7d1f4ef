#include "core/io/input_file.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

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

TEST(InputFile, IsReadToItsEnd) {
  const TempDir dir;
  EXPECT_EQ(read_to_end(dir.write("a", "12345")), "12345");
  EXPECT_EQ(read_to_end("/dev/null"), "");
  EXPECT_EQ(error_of([&] { read_to_end(dir / "none"); }), "cannot read the file");
  EXPECT_EQ(error_of([&] { read_to_end(dir.path()); }), "cannot read the file");
}

TEST(InputFile, OfTextLosesItsMark) {
  const TempDir dir;
  EXPECT_EQ(read_utf8(dir.write("a",
                                "\xef\xbb\xbf"
                                "a b")),
            "a b");
  EXPECT_EQ(read_utf8("/dev/null"), "");
  EXPECT_EQ(error_of([&] {
              read_utf8(dir.write("b",
                                  "\xef\xbb\xbf"
                                  "a\n\xff"));
            }),
            "byte 5, in line 2, is no UTF-8");
  EXPECT_EQ(error_of([&] { read_utf8(dir / "none"); }), "cannot read the file");
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
  EXPECT_EQ(error_of([&] { read_whole_file(dir.path(), 1); }), "it is no file");
  const std::string file = dir.write("a", "12345");
  EXPECT_EQ(error_of([&] { read_whole_file(file, 4); }), "it has 5 bytes, expected 4 at most");
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
            dir / "none: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace wisp
