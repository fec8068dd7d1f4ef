// Files that a listing of a data set's folders passes over. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wisp {

/// Whether a file or folder is passed over by its name: hidden ones, companions that macOS makes on
/// other disks, and what a system or a network disk puts beside photos.
bool is_skipped(std::string_view name);

/// Counts skipped files, folders and links, by kind.
class Skipped {
 public:
  /// Counts a file or folder if is_skipped() holds for its name. Returns whether it does.
  bool by_name(const std::filesystem::path& path);
  /// `kind` is a plural: "links to nothing".
  void add(const std::string& kind, const std::filesystem::path& path);
  void add(const Skipped& other);
  /// A line for each kind: "`folder`: 2 links to nothing were skipped, such as a/b".
  std::vector<std::string> notices(const std::string& folder) const;

 private:
  struct Paths {
    int64_t count = 0;
    std::filesystem::path first;  // in the order of paths
  };
  std::map<std::string, Paths> kinds_;
};

}  // namespace wisp
