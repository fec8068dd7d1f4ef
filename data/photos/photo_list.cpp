#include "data/photos/photo_list.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "data/files_below.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKaggleHead = "ImageId,PredictionString";
constexpr const char* kKaggleEnding = ".JPEG";

struct Line {
  int64_t number = 0;     // in the list, from 1
  std::string name;       // of the file
  std::string_view word;  // the class
};

/// A line: "NAME CLASS", or Kaggle's "NAME,CLASS X Y X Y CLASS …".
Line parse(int64_t number, std::string_view line, bool kaggle) {
  const size_t space = line.find_first_of(kaggle ? "," : " \t");
  WISP_CHECK(space != line.npos && space > 0, "'", line, "', expected a file's name and its class");
  std::string_view rest = line.substr(space + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::string_view label = rest.substr(0, rest.find_first_of(" \t"));
  WISP_CHECK(kaggle || label.size() == rest.size(), "'", line,
             "', expected a file's name and its class");
  std::string name(line.substr(0, space));
  if (kaggle) name += kKaggleEnding;
  return {number, std::move(name), label};
}

std::vector<Line> lines_of(std::string_view text, const std::string& list) {
  const bool kaggle = text.starts_with(kKaggleHead);
  std::vector<Line> lines;
  for (int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || (kaggle && number == 1)) continue;
    naming(concat(list, ":", number), [&] { lines.push_back(parse(number, line, kaggle)); });
  }
  WISP_CHECK(!lines.empty(), list, ": lists no photos");
  return lines;
}

/// The two readings of a list's classes.
class ClassWords {
 public:
  explicit ClassWords(const std::vector<std::string>& classes) {
    for (size_t c = 0; c < classes.size(); ++c)
      by_name_.emplace(classes[c], static_cast<int32_t>(c));
  }

  std::optional<int32_t> named(std::string_view word) const {
    const auto found = by_name_.find(std::string(word));
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }
  /// "01" is no number: with folders 01, 02, … it may be meant as a name.
  std::optional<int32_t> numbered(std::string_view word) const {
    const std::optional<int32_t> number = number_in<int32_t>(word);
    const bool is_class = number && *number >= 0 && *number < std::ssize(by_name_);
    return is_class && std::to_string(*number) == word ? number : std::nullopt;
  }
  std::string expected() const {
    return concat("a class folder's name, or a number from 0 to ", std::ssize(by_name_) - 1);
  }

 private:
  std::unordered_map<std::string, int32_t> by_name_;
};

/// Throws Error for a list whose classes are neither all names nor all numbers.
[[noreturn]] void refuse(const std::vector<Line>& lines, const ClassWords& words,
                         const std::string& list) {
  const auto is_unknown = [&](const Line& line) {
    return !words.named(line.word) && !words.numbered(line.word);
  };
  const auto unknown = std::find_if(lines.begin(), lines.end(), is_unknown);
  if (unknown != lines.end())
    throw Error(concat(list, ":", unknown->number, ": class '", unknown->word, "', expected ",
                       words.expected()));
  const Line& number = *std::find_if(lines.begin(), lines.end(),
                                     [&](const Line& line) { return !words.named(line.word); });
  const Line& name = *std::find_if(lines.begin(), lines.end(),
                                   [&](const Line& line) { return !words.numbered(line.word); });
  throw Error(concat(list, ":", number.number, ": class '", number.word, "' is a number, but '",
                     name.word, "' in line ", name.number,
                     " is a class folder's name; expected names in all lines, or numbers in all"));
}

/// The class of each line. `notices` gets a line if names are numbers of other classes.
std::vector<int32_t> labels_of(const std::vector<Line>& lines, const ClassWords& words,
                               const std::string& list, std::vector<std::string>& notices) {
  bool names = true, numbers = true;
  const Line* differs = nullptr;
  for (const Line& line : lines) {
    const std::optional<int32_t> named = words.named(line.word), other = words.numbered(line.word);
    names = names && named;
    numbers = numbers && other;
    if (!differs && named != other) differs = &line;
  }
  if (!names && !numbers) refuse(lines, words, list);
  if (names && numbers && differs)
    notices.push_back(concat(list, ": its classes may be names of class folders or numbers from 0;",
                             " they are read as names, so '", differs->word,
                             "' is not the class number ", differs->word));
  std::vector<int32_t> labels;
  for (const Line& line : lines)
    labels.push_back(names ? *words.named(line.word) : *words.numbered(line.word));
  return labels;
}

}  // namespace

FoundPhotos photos_by_list(const std::string& folder, const std::string& list,
                           const std::vector<std::string>& classes) {
  const std::string text = naming(list, [&] { return read_utf8(list); });
  const std::vector<Line> lines = lines_of(text, list);
  const auto photos = std::make_shared<PhotoFiles>(folder);
  FoundPhotos found{photos, {}};
  const std::vector<int32_t> labels = labels_of(lines, ClassWords(classes), list, found.notices);
  std::set<std::string> unlisted;
  for (const fs::path& path : entries_of(folder)) unlisted.insert(path.filename().string());
  for (size_t i = 0; i < lines.size(); ++i) {
    WISP_CHECK(unlisted.erase(lines[i].name) == 1, list, ":", lines[i].number, ": ", lines[i].name,
               " is not in ", folder, ", or is listed twice");
    photos->add(lines[i].name, labels[i]);
  }
  Skipped skipped;
  for (const std::string& name : unlisted) {
    const fs::path path = fs::path(folder) / name;
    if (!skipped.by_name(path)) skipped.add(concat("files that ", list, " does not list"), path);
  }
  for (std::string& notice : skipped.notices(folder)) found.notices.push_back(std::move(notice));
  return found;
}

}  // namespace wisp
