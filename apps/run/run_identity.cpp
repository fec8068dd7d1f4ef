#include "apps/run/run_identity.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "apps/version.h"
#include "core/base/hash.h"
#include "core/io/checksum.h"
#include "core/io/input_file.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

constexpr const char* kProgram = "the program";

/// A key that each machine may have its own value of, and why no replica is told apart by it.
struct MachineKey {
  const char* name;
  const char* type;  // some data sets mean other things by the same name
};

constexpr MachineKey kMachineKeys[] = {
    // how fast a machine computes and loads, not what
    {"threads", "integer"},
    {"comm_threads", "integer"},
    {"data.threads", "integer"},
    // where a machine has its data: what is in it is compared
    {"data.path", "string"},
    {"data.train", "string"},
    {"data.validation", "string"},
    {"data.test", "string"},
    {"data.noise", "string"},
    {"model.init", "string"},
    // where it keeps what can be made again, and writes what nobody reads back
    {"data.cache", "string"},
    {"record.gradients.out", "string"},
};

/// What an epoch's order of samples and their cut into steps follow from, beside the data.
bool decides_samples(const std::string& key) {
  return key == "seed" || key == "train.batch" || key == "train.one_batch" ||
         key.starts_with("data.");
}

/// "1,234 bytes" would do to tell most files apart; their checksum tells all.
std::string contents_of(const std::string& file) {
  const std::string bytes = naming(file, [&] { return read_to_end(file); });
  return concat(bytes.size(), " bytes, ", checksum_text(crc32c(bytes.data(), bytes.size())));
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
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

bool is_of_machine(const ConfigKey& key) {
  return std::any_of(
      std::begin(kMachineKeys), std::end(kMachineKeys),
      [&](const MachineKey& known) { return key.name == known.name && key.type == known.type; });
}

std::vector<NamedValue> configuration_of(std::span<const ConfigKey> keys) {
  std::vector<NamedValue> values = {{kProgram, program_version()}};
  for (const ConfigKey& key : keys) {
    if (!is_of_machine(key)) values.push_back({key.name, key.value});
  }
  return values;
}

std::vector<NamedValue> data_of(const RunFacts& facts, const std::string& init) {
  std::vector<NamedValue> values = {{"the classes", classes_of(facts.facts)}};
  for (const SplitFacts& part : facts.data) values.push_back({name_of(part), part.str()});
  if (!init.empty()) values.push_back({"the file of model.init", contents_of(init)});
  return values;
}

void check_processes_agree(const TrainOptions& options, std::span<const NamedValue> values) {
  run_workers(world().size, {.threads = options.threads, .timeout_s = options.timeout_s},
              [&](Worker& worker) { check_agreement(worker.communicator, values); });
}

Changes changes_since(const RunDirectory& before, const Config& config, const RunFacts& facts) {
  Changes changes;
  const auto compare = [&](const std::string& name, const std::string& then, const std::string& now,
                           bool of_samples) {
    if (then == now) return;
    (of_samples ? changes.of_samples : changes.other)
        .push_back(concat(name, " is ", now, ", was ", then));
  };
  // both as a file has them
  const Values then = Config::load(before.file("config.toml"), {}).given_values();
  const Values now = Config::from_text(config.resolved(), "the configuration").given_values();
  for (const ConfigKey& key : config.keys()) {
    const std::string *old = find(then, key.name), *value = find(now, key.name);
    if (is_of_machine(key) || !old || !value) continue;
    compare(key.name, *old, *value, decides_samples(key.name));
  }
  for (const SplitFacts& old : RunFacts::read(before.path()).data) {
    for (const SplitFacts& part : facts.data) {
      if (part.split == old.split)
        compare(name_of(part), old.str(), part.str(), part.split == name_of(Split::train));
    }
  }
  std::ifstream commit(before.file("commit.txt"));
  if (std::string version; std::getline(commit, version))
    compare(kProgram, version, program_version(), false);
  return changes;
}

}  // namespace wisp
