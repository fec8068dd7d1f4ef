#include "data/skipped.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// Thumbnails, deleted files and system files on disks of Synology, QNAP, NetApp, Windows and
/// Linux.
constexpr std::string_view kOfSystems[] = {
    "@eaDir",     "@Recycle",  "@Recently-Snapshot", "#recycle",
    "#snapshot",  "~snapshot", "$RECYCLE.BIN",       "System Volume Information",
    "lost+found", "Thumbs.db", "desktop.ini"};

/// The kind of files that no data set reads; empty for a name of any other.
std::string kind_of(std::string_view name) {
  if (name.starts_with("._") || name == "__MACOSX") return "files of macOS (._…, __MACOSX)";
  if (name.starts_with('.')) return "hidden files and folders";
  const bool of_system =
      std::find(std::begin(kOfSystems), std::end(kOfSystems), name) != std::end(kOfSystems);
  return of_system ? "files and folders of a system (@eaDir, lost+found, …)" : "";
}

}  // namespace

bool is_skipped(std::string_view name) { return !kind_of(name).empty(); }

bool Skipped::by_name(const fs::path& path) {
  const std::string kind = kind_of(path.filename().string());
  if (!kind.empty()) add(kind, path);
  return !kind.empty();
}

void Skipped::add(const std::string& kind, const fs::path& path) {
  Paths& paths = kinds_[kind];
  if (paths.count == 0 || path < paths.first) paths.first = path;
  ++paths.count;
}

void Skipped::add(const Skipped& other) {
  for (const auto& [kind, paths] : other.kinds_) {
    add(kind, paths.first);
    kinds_[kind].count += paths.count - 1;
  }
}

std::vector<std::string> Skipped::notices(const std::string& folder) const {
  std::vector<std::string> lines;
  for (const auto& [kind, paths] : kinds_)
    lines.push_back(concat(folder, ": ", paths.count, " ", kind, " were skipped, such as ",
                           paths.first.lexically_relative(folder).string()));
  return lines;
}

}  // namespace wisp
