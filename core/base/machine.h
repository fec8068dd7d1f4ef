// The properties of a machine that the bits of a run depend on, below the backends. Any thread.
#pragma once

#include <string>

namespace wisp {

/// The system's name of its first CPU, "AMD EPYC 7B13", or "unknown CPU" if it gives none.
/// `cpuinfo` is a file in Linux's format, with lines "KEY : VALUE".
std::string cpu_model(const std::string& cpuinfo = "/proc/cpuinfo");

/// The CPU's model and the C library, "AMD EPYC 7B13, glibc 2.36". The C library's logarithms and
/// cosines draw the first weights.
std::string machine();

}  // namespace wisp
