// Where memory lives and work runs.
#pragma once

#include <string>

namespace wisp {

struct Device {
  enum class Kind { cpu, cuda } kind = Kind::cpu;
  int index = 0;

  bool is_cuda() const { return kind == Kind::cuda; }
  bool operator==(const Device& other) const { return kind == other.kind && index == other.index; }
  std::string str() const { return is_cuda() ? "cuda:" + std::to_string(index) : "cpu"; }
};

}  // namespace wisp
