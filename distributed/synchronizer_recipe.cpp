#include "distributed/synchronizer_recipe.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {

std::string set_keys(const Config& config, std::initializer_list<std::string_view> keys) {
  std::string set;
  for (const ConfigKey& key : config.keys()) {
    if (key.value == key.initial || std::ranges::count(keys, key.name) == 0) continue;
    set += concat(set.empty() ? "" : ", ", key.name, " = ", key.value, " (", config.where(key.name),
                  ")");
  }
  return set;
}

}  // namespace wisp
