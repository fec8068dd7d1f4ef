#include "apps/setup/shared_configuration.h"

#include <algorithm>
#include <string_view>

#include "apps/version.h"
#include "core/base/hash.h"
#include "core/io/utf8.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

/// A key of which each machine may have its own value.
struct MachineKey {
  const char* name;
  const char* type;  // some data sets have other keys of the same name
};

constexpr MachineKey kMachineKeys[] = {
    // the speed of computing and loading, not the result
    {"threads", "integer"},
    {"comm_threads", "integer"},
    {"data.threads", "integer"},
    // places of data, whose content is compared
    {"data.path", "string"},
    {"data.train", "string"},
    {"data.validation", "string"},
    {"data.test", "string"},
    {"data.noise", "string"},
    {"model.init", "string"},
    // places of what can be made again, and of files that no other rank reads
    {"data.cache", "string"},
    {"record.gradients.out", "string"},
};

}  // namespace

bool is_of_machine(const ConfigKey& key) {
  return std::ranges::any_of(kMachineKeys, [&](const MachineKey& known) {
    return key.name == known.name && key.type == known.type;
  });
}

std::string configuration_digest(const std::string& resolved) {
  uint64_t hash = hash_text("");
  for (const auto& [name, value] : Config::from_text(resolved, "config.toml").given_values()) {
    ConfigKey key;
    key.name = name;
    key.type = value.starts_with('"') ? "string" : "integer";  // the only types of a machine's keys
    if (!is_of_machine(key)) hash = hash_text(concat(name, " = ", value), hash);
  }
  return hash_digits(hash);
}

std::vector<NamedValue> configuration_of(std::span<const ConfigKey> keys) {
  std::vector<NamedValue> values = {{kProgram, program_version()}};
  for (const ConfigKey& key : keys) {
    if (!is_of_machine(key)) values.push_back({key.name, key.value});
  }
  return values;
}

void check_processes_agree(const TrainOptions& options, std::span<const NamedValue> values) {
  run_workers(world().size, {.threads = 1, .timeout_s = options.timeout_s},
              [&](Worker& worker) { check_agreement(worker.communicator, values); });
}

}  // namespace wisp
