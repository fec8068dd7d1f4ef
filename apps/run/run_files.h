// The files of a run directory: their names, whether a run made a directory, and their removal. No
// other code removes files of a run. One thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace wisp {

inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kCommitFile = "commit.txt";
inline constexpr const char* kFactsFile = "facts.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kTraceFile = "trace.json";
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kGradientsFolder = "gradients";
/// Says how the run diverged.
inline constexpr const char* kDivergedFile = "diverged.txt";
/// Held by the process that trains in the directory.
inline constexpr const char* kLockFile = "lock";

/// The name of the TensorBoard file of a process that began after `steps` steps.
std::string event_file(int64_t steps);
/// Whether a name is one of event_file().
bool is_event_file(std::string_view name);

/// Whether a run made this directory: it has a commit.txt as a run writes it; or a checkpoint, and
/// no configuration that some other program wrote.
bool holds_run(const std::string& directory);
/// A file or folder that would be taken for a run's, in a directory that no run made; empty if
/// there is none.
std::string file_of_another(const std::string& directory);
/// What keeps a run from saving checkpoints in a directory: a name that is no folder, or another
/// program's file where a checkpoint is written. Empty if nothing does.
std::string file_in_the_way(const std::string& directory);

/// Removes a file of a run directory, or the link of that name. Throws Error.
void remove_run_file(const std::string& directory, const char* name);
/// Removes all files of a run but the lock, and its folders if they hold nothing else. Links are
/// removed, not what they name. First goes what describes a run that has ended, last what says that
/// a run made the directory. Throws Error.
void remove_run_files(const std::string& directory);

}  // namespace wisp
