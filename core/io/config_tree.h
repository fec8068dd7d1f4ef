// The given keys of a configuration, read from files and overrides. Only config.cpp and
// config_tree.cpp include this header, because toml++ is slow to compile. One thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/toml_node.h"

namespace wisp {

/// The given keys, flat: dotted keys with a scalar or list each. A list of tables is one entry.
struct ConfigTree {
  struct Entry {
    std::shared_ptr<const toml::node> value;  // keeps its whole document alive
    std::string place;                        // "file:line", or that it is an override
    std::string typed{};  // an unquoted override's text, for keys of type string
  };
  std::string prefix;  // in a row: the key of the list, and a dot
  std::map<std::string, Entry> entries;
  std::shared_ptr<const ConfigTree> earlier;  // the layer below; null in the first layer

  /// The entry of a key; null if it is not given.
  const Entry* find(const std::string& key) const;
  /// The first entry of table `key`; null if there is none.
  const Entry* first_below(const std::string& key) const;

  /// Adds an entry that wins over earlier ones: tables merge, a scalar or list is replaced.
  void put(const std::string& key, Entry entry);
  /// Adds all entries of `table`, a part of `document`, below `path`.
  void put_all(const std::shared_ptr<const toml::table>& document, const toml::table& table,
               const std::string& path);

  /// Adds the file that `path` extends, then `path`: a layer each. Throws Error with file:line.
  void put_file(const std::string& path);
  /// Adds TOML text in the same way. `name` stands for its path.
  void put_text(const std::string& text, const std::string& name);
  /// Adds a layer of overrides "a.b=value", unless there are none.
  void put_overrides(std::span<const std::string> overrides);
  /// Adds one override. Its value is TOML; a bare word is a string.
  void put_value(const std::string& key, const std::string& value);

 private:
  using Files = std::vector<std::string>;  // a chain of extending files, which finds cycles

  void begin_layer();
  void put_layers(const std::string& text, const std::string& name, Files files);
  void put_base(const toml::node& extends, const std::string& name, Files files);
};

}  // namespace wisp
