// The configuration of a run: a TOML file with `extends`, and overrides a.b=c. Components bind keys
// to plain option structs. The same bindings check, print and document a configuration. A Config is
// a value: copy it for each thread.
#pragma once

#include <cassert>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace wisp {

/// A given key that no component binds.
class UnknownKey : public Error {
 public:
  UnknownKey(std::string key, const std::string& message) : Error(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

template <class T, class... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);
/// Types of keys.
template <class T>
constexpr bool kIsConfigType =
    kIsOneOf<T, bool, int, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
             std::vector<std::string>>;

/// One bound key, for printing and reference.
struct ConfigKey {
  std::string name;                     // dotted: "optimizer.lr"
  std::string type;                     // bool, integer, number, string, list of …
  std::string value;                    // resolved value, as TOML
  std::string initial;                  // default, as TOML
  std::string meaning;                  // one line, with the unit
  std::vector<std::string> words = {};  // words that it accepts; empty: not listed
};

struct ConfigTree;  // the given keys

class Config {
 public:
  /// An empty configuration: every key keeps its default.
  Config();
  /// Reads the file that `path` extends (relative to `path`), then `path`, then the overrides
  /// "a.b=value". An override's value is TOML; a bare word is a string. Throws Error with file:line
  /// if something cannot be parsed or found.
  static Config load(const std::string& path, std::span<const std::string> overrides);
  static Config from_text(const std::string& text, const std::string& name,
                          std::span<const std::string> overrides = {});

  /// Sets `value` if the key is given; its current content is the default. `value` is a bool, int,
  /// int64_t, double or string, or a vector of one of the last three. Throws Error with file:line,
  /// the type found and the type expected. A number may be given as an integer, but not as inf or
  /// nan. A key may be bound again, with the same type and default.
  template <class T>
  requires kIsConfigType<T>
  void bind(const std::string& key, T& value, const std::string& meaning);
  /// Binds a number. Throws Error if it is below `least`.
  template <class T>
  requires kIsOneOf<T, int, int64_t, double>
  void bind_least(const std::string& key, T& value, std::type_identity_t<T> least,
                  const std::string& meaning) {
    bind(key, value, meaning);
    expect(value >= least, key, value, concat(least, " or more"));
  }
  /// Binds a text that is one of `words`. Throws Error with the words for any other.
  void bind_word(const std::string& key, std::string& value, const std::vector<std::string>& words,
                 const std::string& meaning);
  /// Binds a text that is one of the words of `choices`. Sets `value` to what the word stands for.
  /// Its current content is the default and one of the choices.
  template <class T>
  void bind_choice(const std::string& key, T& value,
                   const std::vector<std::pair<std::string, std::type_identity_t<T>>>& choices,
                   const std::string& meaning);
  /// Adds words that a bound key accepts, for completion. The caller checks the value.
  void offer(const std::string& key, const std::vector<std::string>& words);
  /// The rows of an array of tables ([[compression.policy]]). Bind and finish each row by itself.
  std::vector<Config> rows(const std::string& key, const std::string& meaning);

  /// The table `key` as a Config, for another component to bind: `key` = {a = 1} gives key "a".
  /// finish() accepts all keys of the table.
  Config table(const std::string& key, const std::string& meaning);
  /// An unbound copy in which the given keys of `other`, below `prefix`, replace keys of the same
  /// names. Messages name a key's original place.
  Config with(const std::string& prefix, const Config& other) const;

  /// Sets a key from the program (a command-line shorthand), before it is bound. The value wins
  /// over files and overrides.
  void set(const std::string& key, const std::string& toml_value);
  /// Removes a given key that is not bound.
  void forget(const std::string& key);
  /// The configuration's earlier layers, unbound: the one before the overrides, then the one before
  /// each extending file, down to the first file. A key set by the program belongs to the last
  /// layer.
  std::vector<Config> earlier() const;
  /// Whether the key was given, not defaulted.
  bool given(const std::string& key) const;
  /// Every given key, sorted by name, with its value as TOML.
  std::vector<std::pair<std::string, std::string>> given_values() const;
  /// "file:line" of a given key, for messages. The key's name if it was not given.
  std::string where(const std::string& key) const;
  /// Begins a message that names the key: "file:line: ", or nothing if the key was not given.
  std::string opening(const std::string& key) const;

  /// Throws Error unless `holds`: "file:line: KEY is VALUE, expected RANGE", without the place if
  /// the key was not given.
  template <class T>
  void expect(bool holds, const std::string& key, const T& value, const std::string& range) const {
    if (!holds) refuse(key, concat(value), range);
  }

  /// Throws UnknownKey for the first given key that was never bound, with file:line and the nearest
  /// known key.
  void finish() const;
  /// All bound keys in order of binding.
  const std::vector<ConfigKey>& keys() const;
  /// The resolved configuration as TOML that load() can read. Rows appear as they were given.
  std::string resolved() const;

 private:
  explicit Config(ConfigTree tree);
  void add_key(ConfigKey key);
  [[noreturn]] void refuse(const std::string& key, const std::string& value,
                           const std::string& range) const;

  std::shared_ptr<const ConfigTree> tree_;  // given keys; shared, never changed
  std::vector<ConfigKey> keys_;
};

template <class T>
void Config::bind_choice(
    const std::string& key, T& value,
    const std::vector<std::pair<std::string, std::type_identity_t<T>>>& choices,
    const std::string& meaning) {
  std::string word;
  std::vector<std::string> words;
  for (const auto& [name, choice] : choices) {
    if (word.empty() && choice == value) word = name;
    words.push_back(name);
  }
  assert(!word.empty());
  bind_word(key, word, words, meaning);
  for (const auto& [name, choice] : choices) {
    if (name == word) value = choice;
  }
}

}  // namespace wisp
