// The directory that the files of all workers form. To save: one worker calls prepare_directory,
// barrier, each writes files of its own into it and waits for the others, one calls
// publish_directory. Any thread.
#pragma once

#include <string>

namespace wisp {

/// Makes `tmp` an empty directory, removing what an interrupted save left there. Throws Error.
void prepare_directory(const std::string& tmp);
/// Adds manifest.json with the size and checksum of each file, syncs, and puts `tmp` in the place
/// of `target`. If `target` was a whole checkpoint, it or TARGET.old is one at each moment. Throws
/// Error.
void publish_directory(const std::string& tmp, const std::string& target);
/// `target`, or TARGET.old if a publication was cut short. Throws Error if neither is there, or if
/// a file that its manifest names is absent or has another size.
std::string find_checkpoint(const std::string& target);
/// Throws Error unless each file has the checksum that the manifest says.
void verify_checkpoint(const std::string& directory);

}  // namespace wisp
