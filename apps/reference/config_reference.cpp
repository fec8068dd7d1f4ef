#include "apps/reference/config_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/markdown_cell.h"
#include "apps/setup/methods.h"
#include "apps/setup/train_options.h"
#include "compression/policy.h"
#include "core/train/freeze.h"
#include "data/data_source.h"
#include "models/model.h"

namespace wisp {
namespace {

/// The unit of a key, by the end of its name.
std::string unit_of(const std::string& key) {
  const std::pair<const char*, const char*> units[] = {{"gbit_per_s", "Gbit/s"},
                                                       {"_us", "µs"},
                                                       {"_ms", "ms"},
                                                       {"_s", "s"},
                                                       {"_bytes", "bytes"},
                                                       {"epochs", "epochs"},
                                                       {"milestones", "epochs"},
                                                       {"steps", "steps"},
                                                       {"log_every", "steps"},
                                                       {"eval_every", "epochs"},
                                                       {".batch", "samples"},
                                                       {"_count", "samples"}};
  for (const auto& [suffix, unit] : units) {
    if (key.ends_with(suffix)) return unit;
  }
  return "";
}

std::string table(const std::vector<ConfigKey>& keys) {
  if (keys.empty()) return "No keys of its own.\n\n";
  std::string text = "| key | type | default | unit | meaning |\n|---|---|---|---|---|\n";
  for (const ConfigKey& key : keys)
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", key.name, key.type,
                        markdown_cell(key.initial), unit_of(key.name), markdown_cell(key.meaning));
  return text + "\n";
}

/// The keys of one component.
struct Section {
  std::string name;
  std::string summary;
  std::vector<ConfigKey> keys;
};

std::vector<ConfigKey> run_keys() {
  Config config;
  const TrainOptions options = TrainOptions::bind(config, World{});
  freeze(config, {});
  choose_methods(config, options, {});
  std::vector<ConfigKey> keys = config.keys();
  Config components;
  OptimizerRegistry::instance().find("optimizer", OptimizerOptions().kind).make(components, 0.0);
  ScheduleRegistry::instance().find("schedule", LrSchedule().kind).make(components, 1.0);
  std::erase_if(keys, [&](const ConfigKey& key) {
    return std::ranges::count(components.keys(), key.name, &ConfigKey::name) > 0;
  });
  Config data;  // binding a data set also binds the default one's keys
  make_data_source(data);
  keys.push_back(data.keys().front());
  return keys;
}

/// A section per component of a registry; `bind` makes a component.
template <class Registry, class Bind>
std::vector<Section> sections(const Bind& bind) {
  std::vector<Section> all;
  for (const auto& [name, entry] : Registry::instance().entries()) {
    Config config;
    bind(entry, config);
    all.push_back({name, entry.summary, config.keys()});
  }
  return all;
}

/// The models, each with the first kind of data that it accepts: pictures of ImageNet's size, a
/// text or spectrograms.
std::vector<Section> models() {
  const std::vector<Facts> kinds = {
      {.inputs = {{.name = "input", .sample = {224, 224, 3}}}, .classes = 10},
      {.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32}}, .classes = 10},
      {.inputs = {{.name = "spectrogram", .sample = {0, 161}, .padded = true}}, .classes = 29}};
  return sections<ModelRegistry>([&](const auto& entry, Config& config) {
    for (const Facts& kind : kinds) {
      try {
        config = {};
        entry.make(config, kind);
        return;
      } catch (const Error&) {
        if (&kind == &kinds.back()) throw;
      }
    }
  });
}

std::vector<Section> methods() {
  std::vector<Section> all;
  for (const std::string& name : method_names()) {
    const BoundMethod method = bind_method(name);
    all.push_back({name, method.summary, method.keys});
  }
  return all;
}

struct Chapter {
  const char* title;
  std::vector<Section> sections;
};

/// The components of all kinds.
std::vector<Chapter> chapters() {
  const auto make = [](const auto& entry, Config& config) { entry.make(config); };
  const auto make_with = [](double number) {
    return [number](const auto& entry, Config& config) { entry.make(config, number); };
  };
  return {{"Models (`model.name`)", models()},
          {"Data sets (`data.name`)", sections<DataRegistry>(make)},
          {"Optimizers (`optimizer.kind`)", sections<OptimizerRegistry>(make_with(0.0))},
          {"Learning-rate schedules (`schedule.kind`)", sections<ScheduleRegistry>(make_with(1.0))},
          {"Compression methods (`compression.method`)", methods()}};
}

}  // namespace

std::vector<std::string> words_of_key(const std::string& key) {
  std::vector<std::string> words;
  for (const ConfigKey& known : config_keys()) {
    if (known.name != key) continue;
    if (known.type == "bool") return {"true", "false"};
    for (const std::string& word : known.words)
      if (std::ranges::count(words, word) == 0) words.push_back(word);
  }
  return words;
}

std::string config_reference() {
  Config policy;
  PolicyRule::bind(policy);
  std::string text =
      "# Config reference\n\nPrinted by `wisp config --reference`. A config is TOML. `extends = "
      "\"base.toml\"` reads another file's keys first, and\n`key=value` on the command line comes "
      "last. An unknown key is an error. A later file, or the command line, may name\n"
      "another model, data set, optimizer, schedule or method. Keys of the replaced one are then "
      "dropped, and the log\nnames them; so are keys of optimizers and schedules that are not "
      "chosen.\n\n"
      "## Every run\n\n" +
      table(run_keys()) + "Rows of `[[compression.policy]]`; the first match decides:\n\n" +
      table(policy.keys());
  for (const auto& [title, sections] : chapters()) {
    text += fmt::format("## {}\n\n", title);
    for (const auto& [name, summary, keys] : sections)
      text += fmt::format("### {}\n\n{}\n\n{}", name, summary, table(keys));
  }
  text.pop_back();  // leaves one line feed at the end
  return text;
}

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> keys = run_keys();
  for (const Chapter& chapter : chapters()) {
    for (const Section& section : chapter.sections)
      keys.insert(keys.end(), section.keys.begin(), section.keys.end());
  }
  return keys;
}

}  // namespace wisp
