// Descriptors of open files, and the paths that lead to them. Any thread.
#pragma once

#include <optional>
#include <string>

namespace wisp {

/// The path with its links resolved, up to a path /proc/self/fd/N. Its end need not exist. None for
/// links that lead in a circle.
std::optional<std::string> behind_links(const std::string& path);

/// N of a path that leads to /proc/self/fd/N, as /dev/stdin and /dev/fd/N do; -1 for other paths.
int own_descriptor(const std::string& path);

/// Makes the reads and writes of a file that was opened with O_NONBLOCK wait. Returns whether it
/// can.
bool let_wait(int descriptor);

}  // namespace wisp
