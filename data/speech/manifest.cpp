#include "data/speech/manifest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/base/number.h"
#include "core/io/input_file.h"
#include "core/io/json.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKeys[] = {"audio", "text", "duration", "speaker", "id"};

using Fields = std::map<std::string, std::string>;  // value by key

bool is_key(std::string_view name) {
  return std::find(std::begin(kKeys), std::end(kKeys), name) != std::end(kKeys);
}

std::vector<const char*> needed_keys(Texts texts) {
  return texts == Texts::needed ? std::vector{"audio", "text"} : std::vector{"audio"};
}

/// The utterance in the fields of one record. `where` is for messages.
Utterance utterance_of(const Fields& fields, const fs::path& folder, Texts texts,
                       const std::string& where) {
  const auto value = [&](const char* key) {
    const auto found = fields.find(key);
    return found == fields.end() ? std::string() : found->second;
  };
  for (const auto& [key, text] : fields)
    WISP_CHECK(text.find('\0') == text.npos, where, ": ", key,
               " has a byte of zero, expected text");
  for (const char* key : needed_keys(texts))
    WISP_CHECK(!value(key).empty(), where, ": there is no ", key);
  Utterance utterance{.id = value("id"),
                      .audio = (folder / value("audio")).string(),
                      .text = value("text"),
                      .speaker = value("speaker")};
  if (utterance.id.empty()) utterance.id = fs::path(utterance.audio).stem().string();
  if (const std::string text = value("duration"); !text.empty()) {
    utterance.seconds = number_in<double>(text).value_or(0);
    WISP_CHECK(std::isfinite(utterance.seconds) && utterance.seconds > 0, where, ": duration is \"",
               text, "\", expected seconds");
  }
  std::error_code failure;  // a name may be too long
  WISP_CHECK(fs::exists(utterance.audio, failure), where, ": there is no file ", utterance.audio);
  return utterance;
}

Fields fields_of_json(std::string_view line) {
  Fields fields;
  const nlohmann::json object =
      parse_json(line, [](int depth, const std::string& key) { return depth > 1 || !is_key(key); });
  WISP_CHECK(object.is_object(), "expected an object of JSON");
  for (const char* key : kKeys) {
    if (!object.contains(key)) continue;
    const nlohmann::json& value = object[key];
    const bool number = std::string_view(key) == "duration";
    WISP_CHECK(number ? value.is_number() : value.is_string(), key, " is ", shown(value),
               ", expected ", number ? "a number" : "a text");
    fields[key] = number ? value.dump() : value.get<std::string>();
  }
  return fields;
}

/// Whether a line end begins here: carriage returns before a line feed or the end. Carriage returns
/// elsewhere are white space.
bool ends_line(std::string_view text) {
  const size_t behind = std::min(text.find_first_not_of('\r'), text.size());
  return behind > 0 && (behind == text.size() || text[behind] == '\n');
}

/// The next record of CSV. `text` and `line` move to the record after it.
std::vector<std::string> next_record(std::string_view& text, int64_t& line,
                                     const std::string& path) {
  const int64_t begun = line;
  std::vector<std::string> fields(1);
  bool quoted = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        fields.back() += text[++at];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (!ends_line(text.substr(at))) {
      fields.back() += c;
    }
  }
  WISP_CHECK(!quoted, path, ":", begun, ": a quotation without an end");
  text.remove_prefix(at);
  return fields;
}

std::vector<Utterance> read_json(std::string_view text, const std::string& path, Texts texts) {
  std::vector<Utterance> utterances;
  const fs::path folder = fs::path(path).parent_path();
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = concat(path, ":", number);
    utterances.push_back(
        utterance_of(naming(where, [&] { return fields_of_json(line); }), folder, texts, where));
  }
  return utterances;
}

std::vector<Utterance> read_csv(std::string_view text, const std::string& path, Texts texts) {
  std::vector<Utterance> utterances;
  const fs::path folder = fs::path(path).parent_path();
  // skips blank lines at the start
  const size_t begin =
      text.rfind('\n', text.find_first_not_of(" \t\r\n")) + 1;  // 0 without blank lines
  int64_t line = 1 + std::count(text.data(), text.data() + begin, '\n');
  text.remove_prefix(begin);
  const std::string title = concat(path, ":", line);
  const std::vector<std::string> names = next_record(text, line, path);
  for (const char* key : needed_keys(texts))
    WISP_CHECK(std::find(names.begin(), names.end(), key) != names.end(), title,
               ": no column is called ", key,
               ", expected columns audio, text, and perhaps duration, speaker, id");
  for (const std::string& name : names)
    WISP_CHECK(!is_key(name) || std::count(names.begin(), names.end(), name) == 1, title,
               ": more than one column is called ", name);
  while (!text.empty()) {
    const std::string where = concat(path, ":", line);
    const std::vector<std::string> values = next_record(text, line, path);
    if (values.size() == 1 && values[0].empty()) continue;
    WISP_CHECK(values.size() == names.size(), where, ": ", values.size(), " fields, expected ",
               names.size());
    Fields fields;
    for (size_t i = 0; i < names.size(); ++i) fields[names[i]] = values[i];
    utterances.push_back(utterance_of(fields, folder, texts, where));
  }
  return utterances;
}

}  // namespace

std::vector<Utterance> read_manifest(const std::string& path, Texts texts) {
  const std::string text = naming(path, [&] { return read_utf8(path); });
  const size_t first = text.find_first_not_of(" \t\r\n");
  WISP_CHECK(first != text.npos, path, ": the manifest is empty");
  const std::vector<Utterance> utterances =
      text[first] == '{' ? read_json(text, path, texts) : read_csv(text, path, texts);
  WISP_CHECK(!utterances.empty(), path, ": no utterances");
  return utterances;
}

}  // namespace wisp
