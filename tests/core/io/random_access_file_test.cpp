#include <gtest/gtest.h>

#include <utility>

#include "core/io/input_file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

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
