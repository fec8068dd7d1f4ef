// The processor time that a container or a batch system grants a process, in cores. Linux only. Any
// thread.
#pragma once

#include <optional>
#include <string>

namespace wisp {

/// The smallest quota of the control groups (v1 and v2) that a process is in, from its own up to
/// the root: 1.5 is the time of one and a half cores. Empty if none is set. `groups` is the text of
/// /proc/PID/cgroup; the groups' folders are below `root`.
std::optional<double> cpu_quota(const std::string& groups, const std::string& root);

/// This process's.
std::optional<double> cpu_quota();

}  // namespace wisp
