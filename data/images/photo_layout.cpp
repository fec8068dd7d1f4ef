#include "data/images/photo_layout.h"

#include <filesystem>

#include "core/base/error.h"
#include "data/images/photo_files.h"
#include "data/images/photo_shards.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKagglesFolder = "ILSVRC/Data/CLS-LOC";
constexpr const char* kTestFolders[] = {"val", "validation", "test"};
constexpr const char* kLists[] = {"val.txt", "LOC_val_solution.csv"};

bool has_folders(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) return true;
  }
  return false;
}

}  // namespace

PhotoLayout find_layout(const std::string& path) {
  WISP_CHECK(fs::is_directory(path), "photos: no directory '", path,
             "' (data.path), expected a folder for each class in it, or train and val with these");
  const fs::path inside = fs::path(path) / kKagglesFolder;
  const fs::path base = fs::is_directory(inside) ? inside : fs::path(path);
  if (!fs::is_directory(base / "train")) return {base.string(), "", ""};
  PhotoLayout layout{(base / "train").string(), "", ""};
  for (const char* name : kTestFolders) {
    if (layout.test.empty() && fs::is_directory(base / name)) layout.test = (base / name).string();
  }
  for (const char* name : kLists) {
    if (layout.list.empty() && fs::is_regular_file(fs::path(path) / name))
      layout.list = (fs::path(path) / name).string();
  }
  return layout;
}

std::vector<std::string> classes_of(const std::string& folder) {
  return has_shards(folder) ? classes_of_shards(folder) : class_folders(folder);
}

PhotosAndNotices find_photos(const std::string& folder, const std::string& list,
                             const std::vector<std::string>& classes) {
  if (has_shards(folder)) {
    WISP_CHECK(classes_of_shards(folder) == classes, folder,
               ": the shards have other classes than the training set");
    return {std::make_shared<PhotoShards>(folder), {}};
  }
  const bool by_list = !has_folders(folder);
  WISP_CHECK(!by_list || !list.empty(), folder, ": no folder for each class in it, and no list ",
             kLists[0], " or ", kLists[1], " of its files' classes in data.path");
  FoundPhotos found =
      by_list ? photos_by_list(folder, list, classes) : photos_by_folder(folder, classes);
  return {std::move(found.photos), std::move(found.notices)};
}

}  // namespace wisp
