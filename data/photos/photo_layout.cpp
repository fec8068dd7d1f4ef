#include "data/photos/photo_layout.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "data/photos/photo_list.h"
#include "data/photos/photo_shards.h"
#include "data/skipped.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKaggleFolder = "ILSVRC/Data/CLS-LOC";
constexpr std::string_view kValidationFolders[] = {"val", "valid", "validation", "dev"};
constexpr std::string_view kTestFolder = "test";
constexpr const char* kLists[] = {"val.txt", "LOC_val_solution.csv"};

bool is_validation(std::string_view name) {
  return std::ranges::count(kValidationFolders, name) > 0;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The names of the folders beside train. Throws Error for one that belongs to no known layout.
std::vector<std::string> beside_train(const fs::path& base) {
  std::vector<std::string> names = folders_in(base.string());
  std::erase(names, "train");
  for (const std::string& name : names)
    WISP_CHECK(is_validation(name) || name == kTestFolder, base.string(), ": train and ", name,
               " are beside each other; if train is the training set, only val (or valid, "
               "validation, dev) and test may be beside it; if it is a class, give the folder "
               "another name");
  return names;
}

/// The first of the lists that is in a folder; empty without one.
std::string list_in(const fs::path& folder, const std::vector<std::string>& lists) {
  for (const std::string& name : lists) {
    if (is_there((folder / name).string())) return (folder / name).string();
  }
  return "";
}

/// Whether something tells the classes of a folder's photos.
bool is_labelled(const PhotoFolder& folder, const std::vector<std::string>& classes) {
  const std::vector<std::string> folders = folders_in(folder.path);
  return !folder.list.empty() || has_shards(folder.path) ||
         std::ranges::find_first_of(folders, classes) != folders.end();
}

/// Notes class folders that are called as parts of a data set are.
void note_parts(const fs::path& base, std::vector<std::string>& notices) {
  for (const std::string& name : folders_in(base.string()))
    if (is_validation(name) || name == kTestFolder)
      notices.push_back(concat(base.string(), ": ", name,
                               " is read as a class; it is a part of the data set only beside a "
                               "folder train"));
}

/// Notes photos of shards that were packed from folders that are passed over now.
void note_hidden(const PhotoSet& photos, std::vector<std::string>& notices) {
  int64_t count = 0;
  std::string first;
  for (int64_t i = 0; i < photos.count(); ++i) {
    const std::string name = photos.name(i);
    bool hidden = false;
    for (size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
      end = name.find('/', begin);
      hidden = hidden || is_skipped(std::string_view(name).substr(begin, end - begin));
    }
    if (hidden && count++ == 0) first = name;
  }
  if (count > 0)
    notices.push_back(concat(photos.folder(), ": ", count, " photos were packed from hidden files ",
                             "or folders, such as ", first, "; pack them again without these"));
}

}  // namespace

PhotoLayout find_layout(const std::string& path) {
  WISP_CHECK(is_folder(path), "photos: no directory '", path,
             "' (data.path), expected a folder for each class in it, or train and val with these");
  const fs::path inside = fs::path(path) / kKaggleFolder;
  const fs::path base = is_folder(inside) ? inside : fs::path(path);
  PhotoLayout layout{base.string(), {}, {}};
  if (!is_folder(base / "train")) {
    if (!has_shards(layout.train)) note_parts(base, layout.notices);
    return layout;
  }
  layout.train = (base / "train").string();
  if (const std::string list = list_in(path, {"train.txt"}); !list.empty())
    layout.notices.push_back(concat(list,
                                    " is not read: training photos have the classes of their "
                                    "folders, numbered in the order of names"));
  PhotoFolder validation, test;
  for (const std::string& name : beside_train(base)) {
    PhotoFolder& part = is_validation(name) ? validation : test;
    WISP_CHECK(part.path.empty(), part.path, " and ", name,
               " are beside each other, expected one folder for validation");
    part = {(base / name).string(), list_in(path, {name + ".txt"})};
  }
  PhotoFolder& first = validation.path.empty() ? test : validation;
  if (first.list.empty()) first.list = list_in(path, {kLists[0], kLists[1]});
  if (validation.path.empty()) {
    layout.test = test;
  } else if (test.path.empty()) {
    layout.test = validation;
  } else if (is_labelled(test, classes_of(layout.train))) {
    layout.validation = validation;
    layout.test = test;
  } else {
    layout.test = validation;
    layout.notices.push_back(concat(test.path, " is not read, and ", validation.path,
                                    " is the test set: the former has no folder of a class, and ",
                                    path, " no list test.txt"));
  }
  return layout;
}

std::vector<std::string> classes_of(const std::string& folder) {
  return has_shards(folder) ? classes_of_shards(folder) : class_folders(folder);
}

FoundPhotos find_photos(const PhotoFolder& folder, const std::vector<std::string>& classes) {
  const auto& [path, list] = folder;
  if (has_shards(path)) {
    WISP_CHECK(classes_of_shards(path) == classes, path,
               ": the shards have other classes than the training set");
    FoundPhotos found{std::make_shared<PhotoShards>(path), {}};
    note_hidden(*found.photos, found.notices);
    return found;
  }
  if (folders_in(path).empty()) {
    WISP_CHECK(!list.empty(), path, ": no folder for each class in it, and no list ",
               fs::path(path).filename().string(), ".txt or ", kLists[1],
               " of its files' classes in data.path");
    return photos_by_list(path, list, classes);
  }
  FoundPhotos found = photos_by_folder(path, classes);
  if (!list.empty())
    found.notices.push_back(concat(list, " is not read, because ", path, " has class folders"));
  return found;
}

}  // namespace wisp
