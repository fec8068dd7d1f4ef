// Files that are read as a whole. Any thread may call.
#pragma once

#include <cstdint>
#include <string>

namespace wisp {

/// All bytes of a file. Throws Error, without the path, if there is no such file, it cannot be read
/// or has more than `most_bytes`.
std::string read_whole_file(const std::string& path, int64_t most_bytes);

}  // namespace wisp
