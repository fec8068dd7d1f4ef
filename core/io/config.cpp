#include "core/io/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>

#include "core/base/edit_distance.h"
#include "core/base/error.h"
#include "core/io/toml_limits.h"
#include "core/io/toml_node.h"
#include "core/io/toml_text.h"

namespace wisp {

/// The given keys, flat: dotted keys with a scalar or list each. A list of tables is one entry.
struct Config::Tree {
  struct Entry {
    std::shared_ptr<const toml::node> value;  // keeps its whole document alive
    std::string place;
    std::string typed{};  // an unquoted override's text, for keys of type string
  };
  std::string prefix;  // in a row: the key of the list, and a dot
  std::map<std::string, Entry> entries;
  std::shared_ptr<const Tree> earlier;  // the layer below; null in the first layer

  const Entry* find(const std::string& key) const {
    const auto found = entries.find(key);
    return found == entries.end() ? nullptr : &found->second;
  }

  /// The first entry of table `key`; null if there is none.
  const Entry* first_below(const std::string& key) const {
    const auto found = entries.lower_bound(key + ".");
    const bool below = found != entries.end() && found->first.starts_with(key + ".");
    return below ? &found->second : nullptr;
  }

  /// Adds an entry that wins over earlier ones: tables merge, a scalar or list is replaced.
  void put(const std::string& key, Entry entry) {
    entries.erase(entries.lower_bound(key + "."), entries.lower_bound(key + "/"));  // '.' + 1
    for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1))
      entries.erase(key.substr(0, dot));
    entries[key] = std::move(entry);
  }

  /// Starts a new layer, which wins over all entries so far.
  void begin_layer() {
    if (!entries.empty()) earlier = std::make_shared<const Tree>(*this);
  }

  /// Adds all entries of `table`, a part of `document`.
  void put_all(const std::shared_ptr<const toml::table>& document, const toml::table& table,
               const std::string& path);
};

namespace {

constexpr const char* kCommandLine = "command line";

/// "file:line"; a node without a path comes from an override.
std::string place_of(const toml::node& node) {
  const toml::source_region& source = node.source();
  if (!source.path) return kCommandLine;
  return fmt::format("{}:{}", *source.path, source.begin.line);
}

constexpr const char* kRows = "list of tables";
constexpr const char* kTable = "table";

using Document = std::shared_ptr<const toml::table>;

Document parse(const std::string& text, const std::string& name) {
  check_toml_limits(text, name);
  try {
    return std::make_shared<const toml::table>(toml::parse(text, std::string_view(name)));
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

/// `asked_by` is "FILE:LINE: extends " or empty.
std::string read_file(const std::string& path, const std::string& asked_by) {
  std::error_code ignored;  // opening the file reports it
  WISP_CHECK(!std::filesystem::is_directory(path, ignored), asked_by, path, ": is a directory");
  std::ifstream in(path, std::ios::binary);
  WISP_CHECK(in, asked_by, path, ": cannot be read: ", std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Parses the value of an override: TOML, or a bare word.
Document parse_value(const std::string& key, const std::string& text) {
  const bool bare = text.find_first_of("\"'[{") != 0;
  const std::string name = fmt::format("{}: {}={}", kCommandLine, key, text);
  try {
    check_toml_limits(text, name);
    auto document = std::make_shared<const toml::table>(toml::parse("value = " + text));
    if (document->size() == 1) return document;
  } catch (const toml::parse_error& error) {
    WISP_CHECK(bare, name, ": ", error.description());
  } catch (const Error&) {
    if (!bare) throw;
  }
  try {
    return std::make_shared<const toml::table>(toml::parse("value = " + to_toml(text)));
  } catch (const toml::parse_error& error) {  // not UTF-8
    throw Error(fmt::format("{}: {}", name, error.description()));
  }
}

/// A right name in a wrong section has distance two.
size_t key_distance(std::string_view a, std::string_view b) {
  const auto leaf = [](std::string_view key) { return key.substr(key.rfind('.') + 1); };
  return std::min(edit_distance(a, b), edit_distance(leaf(a), leaf(b)) + 2);
}

/// "a.b.c" -> {"a.b", "c"}
std::pair<std::string, std::string> split_key(const std::string& key) {
  const size_t dot = key.rfind('.');
  if (dot == key.npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

/// Limits the key's length: each value stores its whole key, so long keys would take much memory.
void check_key_length(const std::string& key, const std::string& place) {
  constexpr size_t kMost = 256;
  WISP_CHECK(key.size() <= kMost, place, ": a key has ", key.size(), " characters, at most ", kMost,
             " are possible");
}

}  // namespace

void Config::Tree::put_all(const std::shared_ptr<const toml::table>& document,
                           const toml::table& table, const std::string& path) {
  for (const auto& [name, node] : table) {
    const std::string key = path + to_toml_key(name.str());
    check_key_length(key, place_of(node));
    if (const toml::table* below = node.as_table()) {
      put_all(document, *below, key + ".");
    } else {
      put(key, {std::shared_ptr<const toml::node>(document, &node), place_of(node)});
    }
  }
}

namespace {

/// Adds a text on top of the file that it extends. `files` is the chain so far, to find cycles.
void put_text(Config::Tree& tree, const std::string& text, const std::string& name,
              std::vector<std::string>& files);

void put_base(Config::Tree& tree, const toml::node& extends, const std::string& name,
              std::vector<std::string>& files) {
  const std::string place = place_of(extends);
  const auto* base = extends.as_string();
  WISP_CHECK(base, place, ": extends is ", article_and_type(extends), ", expected a file name");
  const std::string path =
      (std::filesystem::path(name).parent_path() / base->get()).lexically_normal().string();
  const std::string text = read_file(path, place + ": extends ");
  const bool cycle = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return std::filesystem::equivalent(file, path);
  });
  files.push_back(path);
  WISP_CHECK(!cycle, place, ": extends makes a cycle: ", fmt::to_string(fmt::join(files, " -> ")));
  put_text(tree, text, path, files);
}

void put_text(Config::Tree& tree, const std::string& text, const std::string& name,
              std::vector<std::string>& files) {
  const Document document = parse(text, name);
  if (const toml::node* extends = document->get("extends")) put_base(tree, *extends, name, files);
  tree.begin_layer();
  tree.put_all(document, *document, "");
  tree.entries.erase("extends");
}

void put_value(Config::Tree& tree, const std::string& key, const std::string& value) {
  WISP_CHECK(is_bare_dotted(key), kCommandLine, ": '", key, "' is not a key, expected a.b=value");
  const Document document = parse_value(key, value);
  const toml::node& node = *document->get("value");
  if (const toml::table* table = node.as_table()) {
    tree.put_all(document, *table, key + ".");
  } else {
    const bool scalar = node.is_value() && !value.starts_with('"') && !value.starts_with('\'');
    tree.put(key, {std::shared_ptr<const toml::node>(document, &node), kCommandLine,
                   scalar ? value : ""});
  }
}

void put_overrides(Config::Tree& tree, std::span<const std::string> overrides) {
  if (!overrides.empty()) tree.begin_layer();
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    WISP_CHECK(equals != text.npos, kCommandLine, ": '", text, "' has no '=', expected a.b=value");
    put_value(tree, text.substr(0, equals), text.substr(equals + 1));
  }
}

}  // namespace

Config::Config() : tree_(std::make_shared<const Tree>()) {}

Config::Config(Tree tree) : tree_(std::make_shared<const Tree>(std::move(tree))) {}

Config Config::load(const std::string& path, std::span<const std::string> overrides) {
  Tree tree;
  std::vector<std::string> files = {path};
  put_text(tree, read_file(path, ""), path, files);
  put_overrides(tree, overrides);
  return Config(std::move(tree));
}

Config Config::from_text(const std::string& text, const std::string& name,
                         std::span<const std::string> overrides) {
  Tree tree;
  std::vector<std::string> files;
  put_text(tree, text, name, files);
  put_overrides(tree, overrides);
  return Config(std::move(tree));
}

void Config::set(const std::string& key, const std::string& toml_value) {
  Tree tree = *tree_;
  put_value(tree, key, toml_value);
  tree_ = std::make_shared<const Tree>(std::move(tree));
}

void Config::forget(const std::string& key) {
  Tree tree = *tree_;
  tree.entries.erase(key);
  tree_ = std::make_shared<const Tree>(std::move(tree));
}

std::vector<Config> Config::earlier() const {
  std::vector<Config> configs;
  for (const Tree* tree = tree_->earlier.get(); tree; tree = tree->earlier.get())
    configs.push_back(Config(*tree));
  return configs;
}

bool Config::given(const std::string& key) const { return tree_->find(key) != nullptr; }

std::vector<std::pair<std::string, std::string>> Config::given_values() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, entry] : tree_->entries) values.emplace_back(key, text_of(*entry.value));
  return values;
}

std::string Config::where(const std::string& key) const {
  const Tree::Entry* entry = tree_->find(key);
  return entry ? entry->place : tree_->prefix + key;
}

std::string Config::opening(const std::string& key) const {
  return given(key) ? where(key) + ": " : "";
}

void Config::refuse(const std::string& key, const std::string& value,
                    const std::string& range) const {
  throw Error(concat(opening(key), tree_->prefix, key, " is ", value, ", expected ", range));
}

void Config::add_key(ConfigKey key) {
  for (const ConfigKey& known : keys_) {
    if (known.name != key.name) continue;
    WISP_CHECK(known.type == key.type, "config: ", tree_->prefix, key.name, " is bound as ",
               known.type, " and as ", key.type);
    WISP_CHECK(known.value == key.value, "config: ", tree_->prefix, key.name,
               " is bound with the defaults ", known.value, " and ", key.value);
    return;
  }
  keys_.push_back(std::move(key));
}

namespace {

void refuse_table(const Config::Tree& tree, const std::string& key, const std::string& expected) {
  if (const Config::Tree::Entry* below = tree.first_below(key)) {
    throw Error(
        fmt::format("{}: {}{} is a table, expected {}", below->place, tree.prefix, key, expected));
  }
}

/// Reads an unquoted override, which may look like a date or a number, for a key of type string.
template <class T>
bool read_typed(const std::string&, T&) {
  return false;
}
bool read_typed(const std::string& typed, std::string& value) {
  value = typed;
  return !typed.empty();
}

template <class T>
bool finite(const T&) {
  return true;
}
bool finite(double value) { return std::isfinite(value); }
bool finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

/// Whether a text contains a zero byte, which would end a path.
template <class T>
bool has_zero_byte(const T&) {
  return false;
}
bool has_zero_byte(const std::string& text) { return text.find('\0') != text.npos; }
bool has_zero_byte(const std::vector<std::string>& texts) {
  return std::ranges::any_of(texts, [](const std::string& text) { return has_zero_byte(text); });
}

}  // namespace

template <class T>
requires kIsConfigType<T>
void Config::bind(const std::string& key, T& value, const std::string& meaning) {
  const std::string initial = to_toml(value);
  refuse_table(*tree_, key, type_of(value));
  if (const Tree::Entry* entry = tree_->find(key)) {
    WISP_CHECK(read(*entry->value, value) || read_typed(entry->typed, value), entry->place, ": ",
               tree_->prefix, key, " is ", article_and_type(*entry->value), " (",
               text_of(*entry->value), "), expected ", type_of(value),
               std::is_same_v<T, int> ? " of 32 bits" : "");
    WISP_CHECK(finite(value), entry->place, ": ", tree_->prefix, key, " is ",
               text_of(*entry->value), ", expected finite numbers");
    WISP_CHECK(!has_zero_byte(value), entry->place, ": ", tree_->prefix, key, " is ",
               text_of(*entry->value), ", expected text without a byte of zero");
  }
  add_key({key, type_of(value), to_toml(value), initial, meaning});
}

template void Config::bind(const std::string&, bool&, const std::string&);
template void Config::bind(const std::string&, int&, const std::string&);
template void Config::bind(const std::string&, int64_t&, const std::string&);
template void Config::bind(const std::string&, double&, const std::string&);
template void Config::bind(const std::string&, std::string&, const std::string&);
template void Config::bind(const std::string&, std::vector<int64_t>&, const std::string&);
template void Config::bind(const std::string&, std::vector<double>&, const std::string&);
template void Config::bind(const std::string&, std::vector<std::string>&, const std::string&);

void Config::bind_word(const std::string& key, std::string& value,
                       const std::vector<std::string>& words, const std::string& meaning) {
  bind(key, value, meaning);
  offer(key, words);
  std::string list;
  for (size_t i = 0; i < words.size(); ++i)
    list += concat(i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  expect(std::ranges::count(words, value) > 0, key, "'" + value + "'", list);
}

void Config::offer(const std::string& key, const std::vector<std::string>& words) {
  const auto bound = std::ranges::find(keys_, key, &ConfigKey::name);
  WISP_CHECK(bound != keys_.end(), "config: ", key, " is offered words before it is bound");
  for (const std::string& word : words)
    if (std::ranges::count(bound->words, word) == 0) bound->words.push_back(word);
}

std::vector<Config> Config::rows(const std::string& key, const std::string& meaning) {
  refuse_table(*tree_, key, kRows);
  std::vector<Config> rows;
  std::string text = "[]";
  if (const Tree::Entry* entry = tree_->find(key)) {
    text = text_of(*entry->value);
    const toml::array* array = entry->value->as_array();
    const bool tables = array && (array->empty() || array->is_homogeneous<toml::table>());
    WISP_CHECK(tables, entry->place, ": ", tree_->prefix, key, " is ",
               article_and_type(*entry->value), " (", text, "), expected ", kRows);
    for (const toml::node& item : *array) {
      const toml::table& table = *item.as_table();
      Tree tree;
      tree.prefix = tree_->prefix + key + ".";
      tree.put_all(Document(entry->value, &table), table, "");
      rows.push_back(Config(std::move(tree)));
    }
  }
  add_key({key, kRows, text, "[]", meaning});
  return rows;
}

Config Config::table(const std::string& key, const std::string& meaning) {
  Tree tree;
  tree.prefix = tree_->prefix + key + ".";
  if (const Tree::Entry* entry = tree_->find(key))
    throw Error(fmt::format("{}: {}{} is {}, expected {}", entry->place, tree_->prefix, key,
                            article_and_type(*entry->value), kTable));
  for (const auto& [given, entry] : tree_->entries) {
    if (given.starts_with(key + ".")) tree.entries[given.substr(key.size() + 1)] = entry;
  }
  Config table(std::move(tree));
  std::string text;
  for (const auto& [name, value] : table.given_values())
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  add_key({key, kTable, "{" + text + "}", "{}", meaning});
  return table;
}

Config Config::with(const std::string& prefix, const Config& other) const {
  Tree tree = *tree_;
  for (const auto& [key, entry] : other.tree_->entries) tree.put(prefix + key, entry);
  return Config(std::move(tree));
}

void Config::finish() const {
  for (const auto& [given, entry] : tree_->entries) {
    const ConfigKey* nearest = nullptr;
    size_t least = std::numeric_limits<size_t>::max();
    for (const ConfigKey& key : keys_) {
      if (key.type == kTable && given.starts_with(key.name + ".")) least = 0;
      const size_t distance = key_distance(given, key.name);
      if (distance >= least) continue;
      least = distance;
      nearest = &key;
    }
    if (least == 0) continue;
    std::string message = fmt::format("{}: unknown key '{}{}'", entry.place, tree_->prefix, given);
    if (nearest) message += fmt::format("; did you mean '{}{}'?", tree_->prefix, nearest->name);
    throw UnknownKey(tree_->prefix + given, message);
  }
}

const std::vector<ConfigKey>& Config::keys() const { return keys_; }

std::string Config::resolved() const {
  std::vector<std::string> tables = {""};  // in order of first binding; keys without a table first
  for (const ConfigKey& key : keys_) {
    const std::string table = split_key(key.name).first;
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
  }
  std::string text;
  for (const std::string& table : tables) {
    std::string lines;
    for (const ConfigKey& key : keys_) {
      const auto [parent, name] = split_key(key.name);
      if (parent == table) lines += fmt::format("{} = {}\n", name, key.value);
    }
    if (!table.empty()) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    text += lines;
  }
  return text;
}

}  // namespace wisp
