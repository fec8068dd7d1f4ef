// The machine below the backends, as far as a run's bits depend on it. Any thread.
#pragma once

#include <string>

namespace wisp {

/// What the system calls its first CPU, "AMD EPYC 7B13"; "unknown CPU" where it gives no name.
/// `cpuinfo`: a file that says it as Linux does, on lines "KEY : VALUE".
std::string cpu_model(const std::string& cpuinfo = "/proc/cpuinfo");

/// The CPU's model and the C library, whose logarithms and cosines draw the first weights:
/// "AMD EPYC 7B13, glibc 2.36".
std::string machine();

}  // namespace wisp
