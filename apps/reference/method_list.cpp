#include "apps/reference/method_list.h"

#include <fmt/format.h>

#include "apps/setup/methods.h"

namespace wisp {

std::string list_methods() {
  std::string text;
  for (const std::string& name : method_names())
    text += fmt::format("{:<12} {}\n", name, bind_method(name).summary);
  return text;
}

std::string describe_method(const std::string& name) {
  const BoundMethod method = bind_method(name);
  std::string text = fmt::format("{}: {}\n", name, method.summary);
  for (const ConfigKey& key : method.keys) {
    text += fmt::format("  {} ({}, default {})\n      {}\n", key.name, key.type, key.initial,
                        key.meaning);
  }
  return text;
}

}  // namespace wisp
