#include "data/files_below.h"

#include <algorithm>
#include <system_error>

#include "core/base/error.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

void check(const std::error_code& failure, const fs::path& path) {
  WISP_CHECK(!failure, path.string(), ": cannot be read: ", failure.message());
}

class Walk {
 public:
  void enter(const fs::path& folder) {
    std::error_code failure;
    const fs::path canonical = fs::canonical(folder, failure);
    check(failure, folder);
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end())
      return circles.push_back(folder);
    open_.push_back(canonical);
    for (const fs::path& path : entries_of(folder)) visit(path);
    open_.pop_back();
  }

  std::vector<fs::path> files, copies, circles, dangling;

 private:
  void visit(const fs::path& path) {
    const fs::file_type type = type_behind_links(path);
    if (type == fs::file_type::not_found) return dangling.push_back(path);
    if (path.filename().string().starts_with("._")) return copies.push_back(path);
    if (type == fs::file_type::regular) return files.push_back(path);
    if (type == fs::file_type::directory) enter(path);
  }

  std::vector<fs::path> open_;  // canonical paths: the folder being read and its parents
};

}  // namespace

fs::file_type type_behind_links(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::not_found || failure == std::errc::too_many_symbolic_link_levels)
    return fs::file_type::not_found;
  check(failure, path);
  return type;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(folder, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure))
    paths.push_back(entry->path());
  check(failure, folder);
  return paths;
}

void note_skipped(std::vector<std::string>& notices, const std::string& folder,
                  const std::string& what, const std::vector<fs::path>& paths) {
  if (paths.empty()) return;
  const fs::path first = *std::min_element(paths.begin(), paths.end());
  notices.push_back(concat(folder, ": ", paths.size(), " ", what, " were skipped, such as ",
                           first.lexically_relative(folder).string()));
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
  note_skipped(below.notices, folder, "links to nothing", walk.dangling);
  note_skipped(below.notices, folder, "links to a folder above them", walk.circles);
  note_skipped(below.notices, folder, "files of macOS (._…)", walk.copies);
  return below;
}

}  // namespace wisp
