// What makes a run this run. All its processes have to have it the same: they would train apart, as
// after a change that did not reach one machine. Who resumes it is told what is otherwise than
// before.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "apps/setup/train_options.h"
#include "core/io/config.h"
#include "distributed/agreement.h"

namespace wisp {

/// Whether each machine may have a value of its own of a key: paths, whose files are compared
/// instead, and numbers of threads.
bool is_of_machine(const ConfigKey& key);

/// The program, and all keys but those of a machine.
std::vector<NamedValue> configuration_of(std::span<const ConfigKey> keys);

/// Classes, the splits' samples, and the file that weights start from ("": none).
std::vector<NamedValue> data_of(const RunFacts& facts, const std::string& init);

/// Throws Error on every process, naming what differs and who has what, unless all have the same
/// values. Collective among processes; `options` are the run's.
void check_processes_agree(const TrainOptions& options, std::span<const NamedValue> values);

/// What a resumed run has otherwise than before: "seed is 2, was 1".
struct Changes {
  /// Of what decides which samples a step takes.
  std::vector<std::string> of_samples;
  std::vector<std::string> other;
};

/// Throws Error if a run directory's files are damaged. What an older version did not write, it
/// cannot tell.
Changes changes_since(const RunDirectory& before, const Config& config, const RunFacts& facts);

}  // namespace wisp
