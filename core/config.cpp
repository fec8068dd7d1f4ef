#include "core/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "core/error.h"

namespace wisp {

/// What was given, flat: dotted keys with their scalar or list. A list of tables is one entry.
struct Config::Tree {
  struct Entry {
    std::shared_ptr<const toml::node> value;  // keeps its whole document alive
    std::string place;
  };
  std::string prefix;  // of a row: the key of its list, and a dot
  std::map<std::string, Entry> entries;

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

  /// The later one wins: tables merge, a scalar or list replaces what was there.
  void put(const std::string& key, Entry entry) {
    std::erase_if(entries, [&](const auto& old) {
      return old.first.starts_with(key + ".") || key.starts_with(old.first + ".");
    });
    entries[key] = std::move(entry);
  }

  /// Adds all that `table`, a part of `document`, holds.
  void put_all(const std::shared_ptr<const toml::table>& document, const toml::table& table,
               const std::string& path);
};

namespace {

constexpr const char* kCommandLine = "command line";

/// A document without a path is an override.
std::string place_of(const toml::node& node) {
  const toml::source_region& source = node.source();
  if (!source.path) return kCommandLine;
  return fmt::format("{}:{}", *source.path, source.begin.line);
}

bool is_bare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
}

bool is_bare_dotted(std::string_view key) {
  for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.')) {
    if (!is_bare(key.substr(0, dot))) return false;
    key.remove_prefix(dot + 1);
  }
  return is_bare(key);
}

// ---- values as TOML ----

std::string to_toml(bool value) { return value ? "true" : "false"; }
std::string to_toml(int64_t value) { return fmt::format("{}", value); }
std::string to_toml(int value) { return fmt::format("{}", value); }

std::string to_toml(double value) {
  std::string text = fmt::format("{}", value);  // shortest that reads back exactly
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string to_toml(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string to_toml_key(std::string_view key) {
  return is_bare(key) ? std::string(key) : to_toml(std::string(key));
}

template <class T>
std::string to_toml(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + to_toml(value);
  return "[" + text + "]";
}

std::string to_toml(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return to_toml(v->get());
  if (const auto* v = node.as_integer()) return to_toml(v->get());
  if (const auto* v = node.as_floating_point()) return to_toml(v->get());
  if (const auto* v = node.as_string()) return to_toml(v->get());
  std::ostringstream text;
  if (const auto* array = node.as_array()) {
    for (const toml::node& item : *array) text << (text.tellp() ? ", " : "") << to_toml(item);
    return "[" + text.str() + "]";
  }
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      text << (text.tellp() ? ", " : " ") << to_toml_key(key.str()) << " = " << to_toml(value);
    }
    return "{" + text.str() + " }";
  }
  if (const auto* v = node.as_date()) text << v->get();
  if (const auto* v = node.as_time()) text << v->get();
  if (const auto* v = node.as_date_time()) text << v->get();
  return text.str();
}

// ---- types ----

const char* article_and_type(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return "a bool";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

template <class T>
struct Type;
template <>
struct Type<bool> {
  static std::string name() { return "bool"; }
  static bool read(const toml::node& node, bool& value) {
    const auto* found = node.as_boolean();
    if (found) value = found->get();
    return found != nullptr;
  }
};
template <>
struct Type<int64_t> {
  static std::string name() { return "integer"; }
  static bool read(const toml::node& node, int64_t& value) {
    const auto* found = node.as_integer();
    if (found) value = found->get();
    return found != nullptr;
  }
};
template <>
struct Type<int> {
  static std::string name() { return "integer"; }
  static bool read(const toml::node& node, int& value) {
    int64_t wide = 0;
    if (!Type<int64_t>::read(node, wide) || wide != static_cast<int>(wide)) return false;
    value = static_cast<int>(wide);
    return true;
  }
};
template <>
struct Type<double> {
  static std::string name() { return "number"; }
  static bool read(const toml::node& node, double& value) {
    if (const auto* integer = node.as_integer()) {
      value = static_cast<double>(integer->get());
      return true;
    }
    const auto* found = node.as_floating_point();
    if (found) value = found->get();
    return found != nullptr;
  }
};
template <>
struct Type<std::string> {
  static std::string name() { return "string"; }
  static bool read(const toml::node& node, std::string& value) {
    const auto* found = node.as_string();
    if (found) value = found->get();
    return found != nullptr;
  }
};
template <class T>
struct Type<std::vector<T>> {
  static std::string name() { return "list of " + Type<T>::name() + "s"; }
  static bool read(const toml::node& node, std::vector<T>& values) {
    const auto* array = node.as_array();
    if (!array) return false;
    std::vector<T> found;
    for (const toml::node& item : *array) {
      T value{};
      if (!Type<T>::read(item, value)) return false;
      found.push_back(std::move(value));
    }
    values = std::move(found);
    return true;
  }
};

constexpr const char* kRows = "list of tables";

// ---- reading ----

using Document = std::shared_ptr<const toml::table>;

Document parse(const std::string& text, const std::string& name) {
  try {
    return std::make_shared<const toml::table>(toml::parse(text, std::string_view(name)));
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

/// `asked_by`: "FILE:LINE: extends " or nothing.
std::string read_file(const std::string& path, const std::string& asked_by) {
  WISP_CHECK(!std::filesystem::is_directory(path), asked_by, path, ": is a directory");
  std::ifstream in(path, std::ios::binary);
  WISP_CHECK(in, asked_by, path, ": cannot be read: ", std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The value of an override: TOML, or a bare word.
Document parse_value(const std::string& key, const std::string& text) {
  try {
    auto document = std::make_shared<const toml::table>(toml::parse("value = " + text));
    if (document->size() == 1) return document;
  } catch (const toml::parse_error& error) {
    const bool quoted = text.find_first_of("\"'[{") == 0;
    WISP_CHECK(!quoted, kCommandLine, ": ", key, "=", text, ": ", error.description());
  }
  return std::make_shared<const toml::table>(toml::parse("value = " + to_toml(text)));
}

// ---- nearest key ----

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// A right name in a wrong section counts as three edits.
size_t key_distance(std::string_view a, std::string_view b) {
  const auto leaf = [](std::string_view key) { return key.substr(key.rfind('.') + 1); };
  return std::min(edit_distance(a, b), edit_distance(leaf(a), leaf(b)) + 3);
}

/// "a.b.c" -> {"a.b", "c"}
std::pair<std::string, std::string> split_key(const std::string& key) {
  const size_t dot = key.rfind('.');
  if (dot == key.npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

}  // namespace

void Config::Tree::put_all(const std::shared_ptr<const toml::table>& document,
                           const toml::table& table, const std::string& path) {
  for (const auto& [name, node] : table) {
    const std::string key = path + to_toml_key(name.str());
    if (const toml::table* below = node.as_table()) {
      put_all(document, *below, key + ".");
    } else {
      put(key, {std::shared_ptr<const toml::node>(document, &node), place_of(node)});
    }
  }
}

namespace {

/// Puts a file's text under what it extends. `files`: the chain that led here, for cycles.
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
    tree.put(key, {std::shared_ptr<const toml::node>(document, &node), kCommandLine});
  }
}

void put_overrides(Config::Tree& tree, std::span<const std::string> overrides) {
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

bool Config::given(const std::string& key) const { return tree_->find(key) != nullptr; }

std::string Config::where(const std::string& key) const {
  const Tree::Entry* entry = tree_->find(key);
  return entry ? entry->place : tree_->prefix + key;
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

template <class T>
void Config::bind_as(const std::string& key, T& value, const std::string& meaning) {
  const std::string initial = to_toml(value);
  if (const Tree::Entry* table = tree_->first_below(key)) {
    throw Error(fmt::format("{}: {}{} is a table, expected {}", table->place, tree_->prefix, key,
                            Type<T>::name()));
  }
  if (const Tree::Entry* entry = tree_->find(key)) {
    WISP_CHECK(Type<T>::read(*entry->value, value), entry->place, ": ", tree_->prefix, key, " is ",
               article_and_type(*entry->value), " (", to_toml(*entry->value), "), expected ",
               Type<T>::name());
  }
  add_key({key, Type<T>::name(), to_toml(value), initial, meaning});
}

void Config::bind(const std::string& key, bool& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, int& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, int64_t& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, double& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, std::string& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, std::vector<int64_t>& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, std::vector<double>& value, const std::string& meaning) {
  bind_as(key, value, meaning);
}
void Config::bind(const std::string& key, std::vector<std::string>& value,
                  const std::string& meaning) {
  bind_as(key, value, meaning);
}

std::vector<Config> Config::rows(const std::string& key, const std::string& meaning) {
  std::vector<Config> rows;
  std::string text = "[]";
  if (const Tree::Entry* entry = tree_->find(key)) {
    text = to_toml(*entry->value);
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

void Config::finish() const {
  for (const auto& [given, entry] : tree_->entries) {
    const ConfigKey* nearest = nullptr;
    size_t least = std::numeric_limits<size_t>::max();
    for (const ConfigKey& key : keys_) {
      const size_t distance = key_distance(given, key.name);
      if (distance >= least) continue;
      least = distance;
      nearest = &key;
    }
    if (nearest && least == 0) continue;
    std::string message = fmt::format("{}: unknown key '{}{}'", entry.place, tree_->prefix, given);
    if (nearest) message += fmt::format("; did you mean '{}{}'?", tree_->prefix, nearest->name);
    throw Error(message);
  }
}

const std::vector<ConfigKey>& Config::keys() const { return keys_; }

std::string Config::resolved() const {
  std::vector<std::string> tables = {""};  // in order of first binding; keys of no table first
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
