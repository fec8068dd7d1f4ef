// The part of the configuration that all processes of a run must share. It is compared before
// anything is read, joined or written, as processes with different settings would train apart.
#pragma once

#include <span>
#include <vector>

#include "apps/setup/train_options.h"
#include "core/io/config.h"
#include "distributed/agreement.h"

namespace wisp {

/// The name by which the program's version is compared.
inline constexpr const char* kProgram = "the program";

/// Whether each machine may have its own value of a key: numbers of threads, and paths, whose files
/// are compared instead.
bool is_of_machine(const ConfigKey& key);

/// A hash of a resolved configuration's text without the keys of a machine.
std::string configuration_digest(const std::string& resolved);

/// The program's version, and all keys except those of a machine.
std::vector<NamedValue> configuration_of(std::span<const ConfigKey> keys);

/// Throws Error on every process, naming each difference and its ranks, unless all have the same
/// values. Collective among processes; `options` are the run's.
void check_processes_agree(const TrainOptions& options, std::span<const NamedValue> values);

}  // namespace wisp
