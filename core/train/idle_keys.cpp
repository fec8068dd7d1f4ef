#include "core/train/idle_keys.h"

#include <algorithm>
#include <map>

namespace wisp {

std::vector<std::string> forget_idle_keys(Config& config, const std::string& what,
                                          const std::string& kind, std::span<const ConfigKey> all) {
  std::string idle;
  const auto values = config.given_values();
  const std::map<std::string, std::string> given(values.begin(), values.end());
  for (const ConfigKey& key : all) {
    const bool bound = std::ranges::count(config.keys(), key.name, &ConfigKey::name) > 0;
    if (bound || !config.given(key.name)) continue;
    if (given.at(key.name) != key.initial)
      idle += concat(idle.empty() ? "" : ", ", key.name, " (", config.where(key.name), ")");
    config.forget(key.name);
  }
  if (idle.empty()) return {};
  return {
      concat("keys of other ", what, "s have no effect with ", what, ".kind ", kind, ": ", idle)};
}

}  // namespace wisp
