#include "core/io/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(FileLock, IsHeldByOne) {
  const TempDir dir;
  std::optional<FileLock> first(std::in_place, dir / "lock");
  const auto take = [&] { const FileLock second(dir / "lock"); };
  EXPECT_EQ(error_of(take), dir / "lock: is held by another process");
  first.reset();
  EXPECT_EQ(error_of(take), "no error");
}

TEST(FileLock, MayLoseItsFile) {
  const TempDir dir;
  {
    const FileLock first(dir / "lock");
    std::filesystem::remove(dir / "lock");
  }
  const FileLock second(dir / "lock");
  EXPECT_TRUE(std::filesystem::exists(dir / "lock"));
  EXPECT_EQ(error_of([&] { const FileLock third(dir / "lock"); }),
            dir / "lock: is held by another process");
}

TEST(FileLock, IsNoPipeAndNoDevice) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", dir / "device");
  for (const std::string& path : {dir / "pipe", dir / "device"})
    EXPECT_EQ(error_of([&] { const FileLock lock(path); }),
              path + ": it is no file, so nothing can be locked by it");
}

TEST(FileLock, NamesAPlaceThatDoesNotExist) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { const FileLock lock(dir / "absent/lock"); }),
            dir / "absent/lock: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace wisp
