#include "core/train/freeze.h"

#include <algorithm>

#include "core/base/edit_distance.h"
#include "core/base/error.h"
#include "core/io/glob.h"

namespace wisp {
namespace {

/// Up to three names, nearest first.
std::string nearest_names(std::span<Parameter* const> parameters, const std::string& pattern) {
  std::vector<std::pair<size_t, std::string>> names;
  for (const Parameter* parameter : parameters)
    names.emplace_back(edit_distance(pattern, parameter->name), parameter->name);
  std::sort(names.begin(), names.end());
  if (names.size() > 3) names.resize(3);
  std::string list;
  for (const auto& [distance, name] : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

void freeze(Config& config, std::span<Parameter* const> parameters) {
  std::vector<std::string> patterns;
  config.bind("train.freeze", patterns,
              "globs of the frozen parameters (* any characters, ? one), which keep their initial "
              "values: no gradient, no bytes");
  for (const std::string& pattern : patterns) {
    bool fits = false;
    for (Parameter* parameter : parameters) {
      if (!glob(pattern, parameter->name)) continue;
      parameter->frozen = true;
      fits = true;
    }
    WISP_CHECK(fits, config.where("train.freeze"), ": train.freeze: no parameter's name fits '",
               pattern, "'; nearest: ", nearest_names(parameters, pattern));
  }
  WISP_CHECK(parameters.empty() || !std::ranges::all_of(parameters, &Parameter::frozen),
             config.where("train.freeze"), ": train.freeze leaves nothing to train");
}

}  // namespace wisp
