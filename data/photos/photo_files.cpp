#include "data/photos/photo_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "data/decoding/image_file.h"
#include "data/files_below.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kEndings = {".jpg", ".jpeg", ".png", ".webp"};

bool is_photo(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

/// What lies in a folder of class folders.
struct Inside {
  std::vector<std::string> folders;  // sorted as bytes
  Skipped skipped;
};

Inside inside(const std::string& folder) {
  Inside found;
  for (const fs::path& path : entries_of(folder)) {
    if (found.skipped.by_name(path)) continue;
    const fs::file_type type = type_behind_links(path);
    if (type == fs::file_type::not_found) {
      found.skipped.add("links to nothing", path);
    } else if (type == fs::file_type::directory) {
      found.folders.push_back(path.filename().string());
    } else {
      found.skipped.add("files beside the class folders", path);
    }
  }
  std::sort(found.folders.begin(), found.folders.end());
  return found;
}

/// Throws Error for a name that no file of a run could hold.
void check_names(const std::string& folder, const std::vector<std::string>& classes) {
  for (const std::string& name : classes)
    WISP_CHECK(is_utf8(name), folder, ": the name of the class folder ", fmt::format("{:?}", name),
               " is no UTF-8; rename the folder");
}

}  // namespace

void PhotoFiles::add(const std::string& path, int32_t label) {
  paths_ += path;
  ends_.push_back(paths_.size());
  labels_.push_back(label);
}

std::string PhotoFiles::name(int64_t photo) const {
  const auto i = static_cast<size_t>(photo);
  const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  return paths_.substr(begin, ends_[i] - begin);
}

std::string_view PhotoFiles::bytes(int64_t photo, std::string& buffer) const {
  return buffer = read_whole_file(folder_ + "/" + name(photo), kMostFileBytes);
}

std::vector<std::string> folders_in(const std::string& folder) { return inside(folder).folders; }

std::vector<std::string> class_folders(const std::string& folder) {
  std::vector<std::string> classes = folders_in(folder);
  WISP_CHECK(!classes.empty(), folder, ": no folders in it, expected one for each class");
  check_names(folder, classes);
  return classes;
}

FoundPhotos photos_by_folder(const std::string& folder, const std::vector<std::string>& classes) {
  Inside top = inside(folder);
  check_names(folder, top.folders);
  for (const std::string& name : top.folders) {
    WISP_CHECK(std::binary_search(classes.begin(), classes.end(), name), folder, "/", name,
               ": the training set has no class '", name, "'");
  }
  const auto photos = std::make_shared<PhotoFiles>(folder);
  FoundPhotos found{photos, {}};
  const size_t prefix = (fs::path(folder) / "").string().size();
  bool any_direct = false;  // a photo lies in its class's folder itself
  for (size_t c = 0; c < classes.size(); ++c) {
    if (!std::binary_search(top.folders.begin(), top.folders.end(), classes[c])) continue;
    const fs::path class_folder = fs::path(folder) / classes[c];
    const FilesBelow below = files_below(class_folder.string());
    for (const fs::path& path : below.files) {
      if (is_photo(path)) {
        photos->add(path.string().substr(prefix), static_cast<int32_t>(c));
        any_direct = any_direct || path.parent_path() == class_folder;
      } else {
        top.skipped.add("files that are no .jpg, .png or .webp", path);
      }
    }
    top.skipped.add(below.skipped);
  }
  found.notices = top.skipped.notices(folder);
  WISP_CHECK(found.photos->count() > 0, folder, ": no .jpg, .png or .webp file in its ",
             classes.size(), " class folders");
  if (!any_direct)
    found.notices.push_back(concat(folder, ": all photos lie in folders of its ", classes.size(),
                                   " class folders, such as ", photos->name(0),
                                   ". Is the data set a folder below?"));
  return found;
}

}  // namespace wisp
