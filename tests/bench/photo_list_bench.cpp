// Times how long photos in class folders take to be found, and the memory that each one takes.
// Usage: photo_list_bench DIR [photos]. With a number, it first makes DIR with 1,000 folders of so
// many hard links to one file in all.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "core/io/output_file.h"
#include "data/photos/photo_files.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFolders = 1000;
constexpr int64_t kLinksOfAFile = 50'000;  // ext4 has up to 65,000

void make_tree(const std::string& directory, int64_t photos) {
  WISP_CHECK(!fs::exists(directory), directory, ": is there already");
  std::string original;
  for (int64_t photo = 0; photo < photos; ++photo) {
    // as long as ImageNet's: n01440764/n01440764_10026.JPEG
    const std::string label = fmt::format("n{:08}", 1'440'000 + photo % kFolders);
    const std::string path = fmt::format("{}/{}/{}_{}.JPEG", directory, label, label, photo);
    if (photo < kFolders) fs::create_directories(fmt::format("{}/{}", directory, label));
    if (photo % kLinksOfAFile == 0) {
      write_file(path, "");
      original = path;
    } else {
      fs::create_hard_link(original, path);
    }
  }
}

/// Bytes of memory that the process has.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void bench(const std::string& directory) {
  const int64_t before = resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  const FoundPhotos found = photos_by_folder(directory, class_folders(directory));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto count = static_cast<double>(found.photos->count());
  fmt::print("{:.0f} photos in {:.2f} s, {:.0f} bytes each\n", count, seconds.count(),
             static_cast<double>(resident_bytes() - before) / count);
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: photo_list_bench DIR [photos]\n");
    return 2;
  }
  try {
    if (argc > 2) wisp::make_tree(argv[1], std::atoll(argv[2]));
    wisp::bench(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "photo_list_bench: {}\n", error.what());
    return 1;
  }
}
