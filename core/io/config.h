// The configuration of a run: a TOML file with `extends`, and overrides a.b=c. Components bind keys
// to plain option structs; the same bindings check, print and document a configuration. A Config is
// a value: copy it per thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace wisp {

/// A key that was given but nobody binds.
class UnknownKey : public Error {
 public:
  UnknownKey(std::string key, const std::string& message) : Error(message), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

/// One bound key, for printing and reference.
struct ConfigKey {
  std::string name;     // dotted: "optimizer.lr"
  std::string type;     // bool, integer, number, string, list of …
  std::string value;    // resolved, as TOML
  std::string initial;  // default, as TOML
  std::string meaning;  // one line, with the unit
};

class Config {
 public:
  struct Tree;  // opaque outside core/io/config.cpp

  /// An empty configuration: every bind keeps its default.
  Config();
  /// Reads `path` (its `extends` first, relative to it), then applies overrides "a.b=value" (values
  /// in TOML; a bare word is a string). Throws Error with file:line for what cannot be parsed or
  /// found.
  static Config load(const std::string& path, std::span<const std::string> overrides);
  static Config from_text(const std::string& text, const std::string& name,
                          std::span<const std::string> overrides = {});

  /// Sets `value` from the key if it is given; its present content is the default. Throws Error
  /// with file:line, the type found and the type expected. An integer is accepted where a number is
  /// expected; inf and nan are not. A key may be bound again, with the same type and default.
  void bind(const std::string& key, bool& value, const std::string& meaning);
  void bind(const std::string& key, int& value, const std::string& meaning);
  void bind(const std::string& key, int64_t& value, const std::string& meaning);
  void bind(const std::string& key, double& value, const std::string& meaning);
  void bind(const std::string& key, std::string& value, const std::string& meaning);
  void bind(const std::string& key, std::vector<int64_t>& value, const std::string& meaning);
  void bind(const std::string& key, std::vector<double>& value, const std::string& meaning);
  void bind(const std::string& key, std::vector<std::string>& value, const std::string& meaning);
  /// The rows of an array of tables ([[compression.policy]]), each to be bound and finished by
  /// itself.
  std::vector<Config> rows(const std::string& key, const std::string& meaning);

  /// The keys of a table that is another component's to bind: `key` = {a = 1} gives key "a".
  /// finish() takes them for known.
  Config table(const std::string& key, const std::string& meaning);
  /// An unbound copy in which the given keys of `other` stand below `prefix`, in the place of its
  /// own; messages name the place that they came from.
  Config with(const std::string& prefix, const Config& other) const;

  /// Sets a key from the program (a command-line shorthand), before it is bound; wins over files
  /// and overrides.
  void set(const std::string& key, const std::string& toml_value);
  /// Takes back that an unbound key was given.
  void forget(const std::string& key);
  /// What was given before the overrides, unbound, then before the file that extends another, down
  /// to the first file. What the program sets belongs to what came last.
  std::vector<Config> earlier() const;
  /// Whether the key was given rather than defaulted.
  bool given(const std::string& key) const;
  /// Every given key in order of its name, with its value as TOML.
  std::vector<std::pair<std::string, std::string>> given_values() const;
  /// "file:line" of a given key, for messages; the key's name if it was not given.
  std::string where(const std::string& key) const;

  /// Throws UnknownKey for the first key that was given but never bound: file:line, and the nearest
  /// known key.
  void finish() const;
  /// All bound keys in order of binding.
  const std::vector<ConfigKey>& keys() const;
  /// The resolved configuration as TOML that load() reads back; rows as they were given.
  std::string resolved() const;

 private:
  explicit Config(Tree tree);
  template <class T>
  void bind_as(const std::string& key, T& value, const std::string& meaning);
  void add_key(ConfigKey key);

  std::shared_ptr<const Tree> tree_;  // what was given; shared, never changed
  std::vector<ConfigKey> keys_;
};

}  // namespace wisp
