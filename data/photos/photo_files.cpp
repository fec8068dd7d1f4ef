#include "data/photos/photo_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "data/decoding/image_file.h"
#include "data/files_below.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kEndings = {".jpg", ".jpeg", ".png", ".webp"};
constexpr std::string_view kKaggleHead = "ImageId,PredictionString";
constexpr const char* kKaggleEnding = ".JPEG";

bool is_photo(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

/// The class that a list gives as a name or a number.
int32_t class_of(std::string_view text, const std::unordered_map<std::string, int32_t>& numbers) {
  const auto found = numbers.find(std::string(text));
  if (found != numbers.end()) return found->second;
  const int32_t number = number_in<int32_t>(text).value_or(-1);
  WISP_CHECK(number >= 0 && number < std::ssize(numbers), "class '", text,
             "', expected a class folder's name, or a number from 0 to ", std::ssize(numbers) - 1);
  return number;
}

/// What lies in a folder of class folders, without hidden names.
struct Inside {
  std::vector<std::string> folders;  // sorted as bytes
  std::vector<fs::path> files, dangling;
};

Inside inside(const std::string& folder) {
  Inside found;
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    if (name.starts_with(".")) continue;
    const fs::file_type type = type_behind_links(path);
    if (type == fs::file_type::not_found) {
      found.dangling.push_back(path);
    } else if (type == fs::file_type::directory) {
      found.folders.push_back(name);
    } else {
      found.files.push_back(path);
    }
  }
  std::sort(found.folders.begin(), found.folders.end());
  return found;
}

/// The name and the class of a line: "NAME CLASS", or Kaggle's "NAME,CLASS X Y X Y CLASS …".
std::pair<std::string, std::string_view> parse(std::string_view line, bool kaggle) {
  const size_t space = line.find_first_of(kaggle ? "," : " \t");
  WISP_CHECK(space != line.npos && space > 0, "'", line, "', expected a file's name and its class");
  std::string_view rest = line.substr(space + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::string_view label = rest.substr(0, rest.find_first_of(" \t"));
  WISP_CHECK(kaggle || label.size() == rest.size(), "'", line,
             "', expected a file's name and its class");
  std::string name(line.substr(0, space));
  if (kaggle) name += kKaggleEnding;
  return {std::move(name), label};
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
  return classes;
}

FoundPhotos photos_by_folder(const std::string& folder, const std::vector<std::string>& classes) {
  const Inside top = inside(folder);
  for (const std::string& name : top.folders) {
    WISP_CHECK(std::binary_search(classes.begin(), classes.end(), name), folder, "/", name,
               ": the training set has no class '", name, "'");
  }
  const auto photos = std::make_shared<PhotoFiles>(folder);
  FoundPhotos found{photos, {}};
  const size_t prefix = (fs::path(folder) / "").string().size();
  std::vector<fs::path> others;
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
        others.push_back(path);
      }
    }
    found.notices.insert(found.notices.end(), below.notices.begin(), below.notices.end());
  }
  note_skipped(found.notices, folder, "files that are no .jpg, .png or .webp", others);
  note_skipped(found.notices, folder, "files beside the class folders", top.files);
  note_skipped(found.notices, folder, "links to nothing beside the class folders", top.dangling);
  WISP_CHECK(found.photos->count() > 0, folder, ": no .jpg, .png or .webp file in its ",
             classes.size(), " class folders");
  if (!any_direct)
    found.notices.push_back(concat(folder, ": all photos lie in folders of its ", classes.size(),
                                   " class folders, such as ", photos->name(0),
                                   ". Is the data set a folder below?"));
  return found;
}

FoundPhotos photos_by_list(const std::string& folder, const std::string& list,
                           const std::vector<std::string>& classes) {
  std::unordered_map<std::string, int32_t> numbers;
  for (size_t c = 0; c < classes.size(); ++c) numbers.emplace(classes[c], static_cast<int32_t>(c));
  const std::string text = naming(list, [&] { return read_utf8(list); });
  const auto photos = std::make_shared<PhotoFiles>(folder);
  FoundPhotos found{photos, {}};
  std::set<std::string> unlisted;
  for (const fs::path& path : entries_of(folder)) unlisted.insert(path.filename().string());
  const bool kaggle = text.starts_with(kKaggleHead);
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = take_line(rest);
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || (kaggle && number == 1)) continue;
    naming(concat(list, ":", number), [&] {
      const auto [name, word] = parse(line, kaggle);
      const int32_t label = class_of(word, numbers);
      WISP_CHECK(unlisted.erase(name) == 1, name, " is not in ", folder, ", or is listed twice");
      photos->add(name, label);
    });
  }
  WISP_CHECK(found.photos->count() > 0, list, ": lists no photos");
  if (!unlisted.empty())
    found.notices.push_back(concat(folder, ": ", unlisted.size(), " files were skipped that ", list,
                                   " does not list, such as ", *unlisted.begin()));
  return found;
}

}  // namespace wisp
