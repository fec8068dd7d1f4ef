#include "data/files_below.h"

#include <algorithm>
#include <system_error>

#include "core/base/error.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

class Walk {
 public:
  void enter(const fs::path& folder) {
    std::error_code failure;
    open_.push_back(fs::canonical(folder, failure));
    fs::directory_iterator entry;
    if (!failure) entry = fs::directory_iterator(folder, failure);
    for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) visit(*entry);
    check(failure, folder);
    open_.pop_back();
  }

  std::vector<fs::path> files, copies, circles, dangling;

 private:
  static void check(const std::error_code& failure, const fs::path& path) {
    WISP_CHECK(!failure, path.string(), ": cannot be read: ", failure.message());
  }

  void visit(const fs::directory_entry& entry) {
    const fs::path& path = entry.path();
    const fs::file_type type = type_behind_links(path);
    if (type == fs::file_type::not_found) return dangling.push_back(path);
    if (path.filename().string().starts_with("._")) return copies.push_back(path);
    if (type == fs::file_type::regular) return files.push_back(path);
    if (type != fs::file_type::directory) return;
    std::error_code failure;
    const fs::path canonical = fs::canonical(path, failure);
    check(failure, path);
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end())
      return circles.push_back(path);
    enter(path);
  }

  std::vector<fs::path> open_;  // canonical paths: the folder being read and its parents
};

}  // namespace

fs::file_type type_behind_links(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::not_found || failure == std::errc::too_many_symbolic_link_levels)
    return fs::file_type::not_found;
  WISP_CHECK(!failure, path.string(), ": cannot be read: ", failure.message());
  return type;
}

std::string passed_over(const std::string& folder, const std::string& what,
                        const std::vector<fs::path>& paths) {
  return concat(folder, ": ", paths.size(), " ", what, " were skipped, such as ",
                std::min_element(paths.begin(), paths.end())->lexically_relative(folder).string());
}

FilesBelow files_below(const std::string& folder) {
  std::error_code failure;
  const fs::file_type type = fs::status(folder, failure).type();
  const bool there = type == fs::file_type::directory || type == fs::file_type::none;
  WISP_CHECK(there, folder, ": no such folder");
  Walk walk;
  walk.enter(folder);
  std::sort(walk.files.begin(), walk.files.end());
  FilesBelow below{std::move(walk.files), {}};
  const auto tell = [&](const std::string& what, const std::vector<fs::path>& paths) {
    if (!paths.empty()) below.notices.push_back(passed_over(folder, what, paths));
  };
  tell("links to nothing", walk.dangling);
  tell("links to a folder above them", walk.circles);
  tell("files of macOS (._…)", walk.copies);
  return below;
}

}  // namespace wisp
