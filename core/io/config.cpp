#include "core/io/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/edit_distance.h"
#include "core/base/error.h"
#include "core/io/config_tree.h"
#include "core/io/toml_node.h"
#include "core/io/toml_text.h"

namespace wisp {
namespace {

constexpr const char* kRows = "list of tables";
constexpr const char* kTable = "table";

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

}  // namespace

Config::Config() : tree_(std::make_shared<const ConfigTree>()) {}

Config::Config(ConfigTree tree) : tree_(std::make_shared<const ConfigTree>(std::move(tree))) {}

Config Config::load(const std::string& path, std::span<const std::string> overrides) {
  ConfigTree tree;
  tree.put_file(path);
  tree.put_overrides(overrides);
  return Config(std::move(tree));
}

Config Config::from_text(const std::string& text, const std::string& name,
                         std::span<const std::string> overrides) {
  ConfigTree tree;
  tree.put_text(text, name);
  tree.put_overrides(overrides);
  return Config(std::move(tree));
}

void Config::set(const std::string& key, const std::string& toml_value) {
  ConfigTree tree = *tree_;
  tree.put_value(key, toml_value);
  tree_ = std::make_shared<const ConfigTree>(std::move(tree));
}

void Config::forget(const std::string& key) {
  ConfigTree tree = *tree_;
  tree.entries.erase(key);
  tree_ = std::make_shared<const ConfigTree>(std::move(tree));
}

std::vector<Config> Config::earlier() const {
  std::vector<Config> configs;
  for (const ConfigTree* tree = tree_->earlier.get(); tree; tree = tree->earlier.get())
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
  const ConfigTree::Entry* entry = tree_->find(key);
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

void refuse_table(const ConfigTree& tree, const std::string& key, const std::string& expected) {
  if (const ConfigTree::Entry* below = tree.first_below(key)) {
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
  if (const ConfigTree::Entry* entry = tree_->find(key)) {
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
  if (const ConfigTree::Entry* entry = tree_->find(key)) {
    text = text_of(*entry->value);
    const toml::array* array = entry->value->as_array();
    const bool tables = array && (array->empty() || array->is_homogeneous<toml::table>());
    WISP_CHECK(tables, entry->place, ": ", tree_->prefix, key, " is ",
               article_and_type(*entry->value), " (", text, "), expected ", kRows);
    for (const toml::node& item : *array) {
      const toml::table& table = *item.as_table();
      ConfigTree tree;
      tree.prefix = tree_->prefix + key + ".";
      tree.put_all({entry->value, &table}, table, "");
      rows.push_back(Config(std::move(tree)));
    }
  }
  add_key({key, kRows, text, "[]", meaning});
  return rows;
}

Config Config::table(const std::string& key, const std::string& meaning) {
  ConfigTree tree;
  tree.prefix = tree_->prefix + key + ".";
  if (const ConfigTree::Entry* entry = tree_->find(key))
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
  ConfigTree tree = *tree_;
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
