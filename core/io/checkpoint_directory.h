// The checkpoints of a run on disk: directories FOLDER/step_N with files of all workers. To save a
// checkpoint, one worker calls prepare_directory(). After a barrier, every worker writes its files
// into the directory. After a second barrier, one worker calls publish_directory(). Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace wisp {

/// Facts in a checkpoint's manifest, beside its list of files: "step" -> "120".
using CheckpointFacts = std::map<std::string, std::string>;

/// Limit for a run's steps: doubles, which ranks exchange, hold all numbers up to it.
constexpr int64_t kMostSteps = int64_t{1} << 53;

/// Whether a checkpoint has a file of this name, or a killed process may have left one.
bool is_checkpoint_file(std::string_view name);
/// FOLDER/step_N.
std::string checkpoint_path(const std::string& folder, int64_t step);
/// FOLDER/saving.tmp, where a checkpoint is while it is written.
std::string saving_path(const std::string& folder);
/// The files in a checkpoint's directory: what all ranks share, and a rank's own.
std::string shared_file(const std::string& directory);
std::string rank_file(const std::string& directory, int rank);
/// The steps of the checkpoints in `folder`, up to kMostSteps, ascending. Empty if there are none.
/// Directories of such names without a manifest or shared file are others'.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

/// Makes `tmp` an empty directory and removes the files of an interrupted save. Throws Error, also
/// if files are there that no checkpoint has.
void prepare_directory(const std::string& tmp);
/// Adds manifest.json with the facts and each file's size and checksum, syncs, and replaces
/// `target` by `tmp`. If `target` was a complete checkpoint, then at each moment `target` or
/// TARGET.old is complete. Throws Error, also if `target` is no checkpoint's directory.
void publish_directory(const std::string& tmp, const std::string& target,
                       const CheckpointFacts& facts);
/// `target`, or TARGET.old if a publication was interrupted. Throws Error if neither exists.
std::string find_checkpoint(const std::string& target);
/// The facts of a checkpoint after a check of all its files. Throws Error if the manifest is
/// missing, damaged or of another format, or if a file of the manifest is missing or has another
/// size or checksum.
CheckpointFacts verify_checkpoint(const std::string& directory);
/// The facts without a check of the files. Throws Error for the manifest, like verify_checkpoint().
CheckpointFacts checkpoint_facts(const std::string& directory);
/// The checksum of a checkpoint's manifest, which contains the checksums of all files, and so
/// identifies the checkpoint. Throws Error for the manifest, like verify_checkpoint().
std::string checkpoint_checksum(const std::string& directory);
/// Removes the files of a checkpoint, the manifest first, and its directory unless others' files
/// are in it. A link is removed, not what it names. Throws Error.
void remove_checkpoint(const std::string& folder, int64_t step);
/// The same for all checkpoints in `folder` and what an interrupted save left there; then the
/// folder, unless it holds anything else. Throws Error.
void remove_checkpoints(const std::string& folder);

}  // namespace wisp
