// Keys that a configuration has for components that it does not choose. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/io/config.h"

namespace wisp {

/// The keys of all components of a registry. `arguments` follow the configuration in a factory's.
/// A component that refuses its own defaults counts with the keys that it has bound until then.
template <class Registry, class... Arguments>
std::vector<ConfigKey> keys_of_all(const Arguments&... arguments) {
  std::vector<ConfigKey> all;
  for (const auto& [name, entry] : Registry::instance().entries()) {
    Config defaults;
    try {
      entry.make(defaults, arguments...);
    } catch (const Error&) {
    }
    all.insert(all.end(), defaults.keys().begin(), defaults.keys().end());
  }
  return all;
}

/// Forgets given keys among `all` that are not bound. Call it after the chosen component,
/// `what`.kind = `kind`, was bound. Returns a notice that names them, without those that have their
/// default: earlier versions wrote all keys into the configuration of a run.
std::vector<std::string> forget_idle_keys(Config& config, const std::string& what,
                                          const std::string& kind, std::span<const ConfigKey> all);

}  // namespace wisp
