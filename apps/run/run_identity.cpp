#include "apps/run/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/run/run_record.h"
#include "apps/setup/shared_configuration.h"
#include "apps/version.h"
#include "core/base/hash.h"
#include "core/io/checksum.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

/// Whether a key affects, besides the data, the order of samples or their division into steps.
bool decides_samples(const std::string& key) {
  return key == "seed" || key == "train.batch" || key == "train.one_batch" ||
         key.starts_with("data.");
}

/// The file's size and checksum: "302112 bytes, 1a2b3c4d".
std::string contents_of(const std::string& file) {
  const RandomAccessFile opened(file);
  return concat(opened.bytes(), " bytes, ", checksum_text(crc32c(opened)));
}

std::string classes_of(const Facts& facts) {
  std::string text = std::to_string(facts.classes);
  if (facts.names.empty()) return text;
  uint64_t hash = hash_text("");
  for (const std::string& name : facts.names) hash = hash_text(name, hash);
  return concat(text, ", of names ", hash_digits(hash));
}

std::string name_of(const SplitFacts& part) { return concat("the ", part.split, " data"); }

using Values = std::vector<std::pair<std::string, std::string>>;

const std::string* find(const Values& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &Values::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<NamedValue> data_of(const RunFacts& facts, const std::string& init) {
  std::vector<NamedValue> values = {{"the classes", classes_of(facts.facts)}};
  for (const SplitFacts& part : facts.data) values.push_back({name_of(part), part.str()});
  if (!init.empty()) values.push_back({"the file of model.init", contents_of(init)});
  return values;
}

std::string Changes::str() const {
  std::vector<std::string> all;
  for (const std::vector<std::string>* kind : {&of_samples, &other, &of_workers, &of_program})
    all.insert(all.end(), kind->begin(), kind->end());
  return fmt::format("{}", fmt::join(all, "; "));
}

Changes changes_since(const RunDirectory& before, const Config& config, const RunFacts& facts) {
  Changes changes;
  const auto compare = [](const std::string& name, const std::string& then, const std::string& now,
                          std::vector<std::string>& kind) {
    if (then != now) kind.push_back(concat(name, " is ", now, ", was ", then));
  };
  const auto kind = [&](bool of_samples) -> std::vector<std::string>& {
    return of_samples ? changes.of_samples : changes.other;
  };
  // both go through the text of a file, so values compare
  const std::string saved = before.file("config.toml");
  const Values then = is_there(saved) ? Config::load(saved, {}).given_values() : Values();
  const Values now = Config::from_text(config.resolved(), "the configuration").given_values();
  for (const ConfigKey& key : config.keys()) {
    const std::string *old = find(then, key.name), *value = find(now, key.name);
    if (is_of_machine(key) || !old || !value) continue;
    const bool workers = key.name == "workers";
    compare(key.name, *old, *value, workers ? changes.of_workers : kind(decides_samples(key.name)));
  }
  for (const SplitFacts& old : RunFacts::read(before.path()).data) {
    for (const SplitFacts& part : facts.data) {
      if (part.split == old.split)
        compare(name_of(part), old.str(), part.str(), kind(part.split == name_of(Split::train)));
    }
  }
  if (const std::string version = version_of(before.path()); !version.empty())
    compare(kProgram, version, program_version(), changes.of_program);
  return changes;
}

}  // namespace wisp
