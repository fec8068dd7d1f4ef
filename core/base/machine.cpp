#include "core/base/machine.h"

#include <gnu/libc-version.h>

#include <fstream>

namespace wisp {

std::string cpu_model(const std::string& cpuinfo) {
  std::ifstream file(cpuinfo);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    const size_t end = line.find_last_not_of(" \t\r");
    if (line.find(':') == line.npos || begin == line.npos) break;
    return line.substr(begin, end + 1 - begin);
  }
  return "unknown CPU";
}

std::string machine() { return cpu_model() + ", glibc " + gnu_get_libc_version(); }

}  // namespace wisp
