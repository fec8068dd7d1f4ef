#include "core/io/descriptor.h"

#include <fcntl.h>

#include <filesystem>

#include "core/base/number.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the system's limit

/// N of a path /proc/self/fd/N; -1 for other paths.
int number_of(const fs::path& path) {
  std::error_code failure;
  const fs::path folder = fs::canonical(path.parent_path(), failure);
  if (failure || folder != fs::canonical("/proc/self/fd", failure) || failure) return -1;
  return number_in<int>(path.filename().string()).value_or(-1);
}

}  // namespace

std::optional<std::string> behind_links(const std::string& path) {
  fs::path target = path;
  std::error_code failure;
  for (int links = 0; number_of(target) < 0; ++links) {
    if (!fs::is_symlink(fs::symlink_status(target, failure))) break;
    if (links == kMostLinks) return std::nullopt;
    const fs::path next = fs::read_symlink(target, failure);
    if (failure) break;  // it was removed meanwhile
    target = target.parent_path() / next;
  }
  return target.string();
}

int own_descriptor(const std::string& path) {
  const std::optional<std::string> target = behind_links(path);
  return target ? number_of(*target) : -1;
}

bool let_wait(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

}  // namespace wisp
