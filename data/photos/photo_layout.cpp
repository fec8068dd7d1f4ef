#include "data/photos/photo_layout.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "data/photos/photo_shards.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKaggleFolder = "ILSVRC/Data/CLS-LOC";
constexpr const char* kTestFolders[] = {"val", "validation", "test"};
constexpr const char* kLists[] = {"val.txt", "LOC_val_solution.csv"};

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Throws Error if there are folders beside train that belong to no known layout.
void check_beside_train(const fs::path& base) {
  for (const std::string& name : folders_in(base.string())) {
    const bool known = name == "train" || std::ranges::count(kTestFolders, name) > 0;
    WISP_CHECK(known, base.string(), ": train and ", name,
               " are beside each other; if train is the training set, only val, validation or test "
               "may be beside it; if it is a class, give the folder another name");
  }
}

}  // namespace

PhotoLayout find_layout(const std::string& path) {
  WISP_CHECK(is_folder(path), "photos: no directory '", path,
             "' (data.path), expected a folder for each class in it, or train and val with these");
  const fs::path inside = fs::path(path) / kKaggleFolder;
  const fs::path base = is_folder(inside) ? inside : fs::path(path);
  if (!is_folder(base / "train")) return {base.string(), "", ""};
  check_beside_train(base);
  PhotoLayout layout{(base / "train").string(), "", ""};
  for (const char* name : kTestFolders) {
    if (layout.test.empty() && is_folder(base / name)) layout.test = (base / name).string();
  }
  for (const char* name : kLists) {
    std::error_code ignored;
    if (layout.list.empty() && fs::is_regular_file(fs::path(path) / name, ignored))
      layout.list = (fs::path(path) / name).string();
  }
  return layout;
}

std::vector<std::string> classes_of(const std::string& folder) {
  return has_shards(folder) ? classes_of_shards(folder) : class_folders(folder);
}

FoundPhotos find_photos(const std::string& folder, const std::string& list,
                        const std::vector<std::string>& classes) {
  if (has_shards(folder)) {
    WISP_CHECK(classes_of_shards(folder) == classes, folder,
               ": the shards have other classes than the training set");
    return {std::make_shared<PhotoShards>(folder), {}};
  }
  if (!folders_in(folder).empty()) return photos_by_folder(folder, classes);
  WISP_CHECK(!list.empty(), folder, ": no folder for each class in it, and no list ", kLists[0],
             " or ", kLists[1], " of its files' classes in data.path");
  return photos_by_list(folder, list, classes);
}

}  // namespace wisp
