// The part of the configuration that all processes of a run must share. It is compared before
// anything is read, joined or written: processes that were told different things would train apart.
#pragma once

#include <span>
#include <vector>

#include "apps/setup/train_options.h"
#include "core/io/config.h"
#include "distributed/agreement.h"

namespace wisp {

/// The name by which the program's version is compared.
inline constexpr const char* kProgram = "the program";

/// Whether each machine may have a value of its own of a key: paths, whose files are compared
/// instead, and numbers of threads.
bool is_of_machine(const ConfigKey& key);

/// The program, and all keys but those of a machine.
std::vector<NamedValue> configuration_of(std::span<const ConfigKey> keys);

/// Throws Error on every process, naming what differs and who has what, unless all have the same
/// values. Collective among processes; `options` are the run's.
void check_processes_agree(const TrainOptions& options, std::span<const NamedValue> values);

}  // namespace wisp
