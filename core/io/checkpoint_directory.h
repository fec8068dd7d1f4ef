// The checkpoints of a run on disk: FOLDER/step_N, each a directory that the files of all workers
// form. To save: one worker calls prepare_directory, barrier, each writes files of its own into it
// and waits for the others, one calls publish_directory. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace wisp {

/// What a manifest says of a checkpoint beside its files: "step" -> "120".
using CheckpointFacts = std::map<std::string, std::string>;

/// FOLDER/step_N.
std::string checkpoint_path(const std::string& folder, int64_t step);
/// The steps of the checkpoints in `folder`, ascending; empty if there are none.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

/// Makes `tmp` an empty directory, removing what an interrupted save left there. Throws Error.
void prepare_directory(const std::string& tmp);
/// Adds manifest.json with the facts and the size and checksum of each file, syncs, and puts `tmp`
/// in the place of `target`. If `target` was a whole checkpoint, it or TARGET.old is one at each
/// moment. Throws Error.
void publish_directory(const std::string& tmp, const std::string& target,
                       const CheckpointFacts& facts);
/// `target`, or TARGET.old if a publication was cut short. Throws Error if neither is there.
std::string find_checkpoint(const std::string& target);
/// Facts of a checkpoint. Throws Error if the manifest is absent, damaged or of another format, or
/// if a file that it names is absent or has another size or checksum.
CheckpointFacts verify_checkpoint(const std::string& directory);
/// The facts alone, files unread. Throws Error as above for the manifest.
CheckpointFacts checkpoint_facts(const std::string& directory);
/// Tells a checkpoint from others: the checksum of its manifest, which has those of all files.
/// Throws Error as above.
std::string checkpoint_checksum(const std::string& directory);
/// Removes a checkpoint; killed on the way, it leaves none that looks whole. Throws Error.
void remove_checkpoint(const std::string& folder, int64_t step);

}  // namespace wisp
