#include "apps/setup/replaced_keys.h"

#include <algorithm>
#include <optional>

#include "apps/setup/methods.h"
#include "apps/setup/train_options.h"
#include "core/base/error.h"
#include "data/data_source.h"
#include "models/model.h"

namespace wisp {
namespace {

/// The keys that a configuration's components bind. A file that others extend may be incomplete, so
/// its other components count even if one cannot be made. A model without its data gets the facts
/// of pictures, and binds its keys before it refuses them.
std::vector<ConfigKey> known_keys(Config config) {
  const auto attempt = [](const auto& bind) {
    try {
      bind();
    } catch (const Error&) {  // errors of the whole configuration are reported elsewhere
    }
  };
  TrainOptions options;
  Config defaults;
  options.optimizer = OptimizerOptions::bind(defaults);
  Facts facts{.inputs = {{.name = "input", .sample = {32, 32, 3}}}, .classes = 10};
  attempt([&] { config.bind("model.name", options.model, ""); });
  const std::string model = options.model;
  attempt([&] { options = TrainOptions::bind(config, World{}); });
  attempt([&] { facts = make_data_source(config)->facts(); });
  attempt([&] { make_model(model, config, facts); });
  attempt([&] { choose_methods(config, options, {}); });
  return config.keys();
}

/// The configuration before its last files and overrides, with the keys that were known then.
struct Layer {
  Config given;
  std::vector<ConfigKey> known;

  /// Whether the key was known then, and given as it still is in `whole`.
  bool knew(const std::string& key, const Config& whole) const {
    return given.given(key) && given.where(key) == whole.where(key) &&
           std::ranges::count(known, key, &ConfigKey::name) > 0;
  }
};

/// The error for an unknown key, which says so if the key belongs to another method.
UnknownKey explained(const UnknownKey& unknown, const Config& config, const std::string& methods) {
  if (!is_method_key(unknown.key())) return unknown;
  return {unknown.key(), concat(config.where(unknown.key()), ": ", unknown.key(),
                                " means nothing to compression.method ", methods,
                                "; `wisp methods NAME` lists a method's keys")};
}

}  // namespace

std::vector<std::string> finish(Config& config, const std::string& methods) {
  std::optional<std::vector<Layer>> layers;
  std::string fallen;
  for (;;) {
    try {
      config.finish();
      break;
    } catch (const UnknownKey& unknown) {
      const std::string& key = unknown.key();
      if (!layers) {
        layers.emplace();
        for (const Config& earlier : config.earlier())
          layers->push_back({earlier, known_keys(earlier)});
      }
      const bool knew =
          std::ranges::any_of(*layers, [&](const Layer& layer) { return layer.knew(key, config); });
      if (!knew) throw explained(unknown, config, methods);
      fallen += concat(fallen.empty() ? "" : ", ", key, " (", config.where(key), ")");
      config.forget(key);
    }
  }
  if (fallen.empty()) return {};
  return {concat("keys of components that were replaced have no effect: ", fallen)};
}

}  // namespace wisp
