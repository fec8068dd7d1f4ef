// Where a rank's process runs, as plain bytes that can be sent to the others.
#pragma once

#include <array>
#include <cstdint>

namespace wisp {

struct Place {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};   // of the machine's kernel: differs from any other's
  uint64_t process_numbers = 0;  // the name space in which `process` counts
  int64_t process = 0;

  static Place own();
  bool same_machine(const Place& other) const { return boot == other.boot && host == other.host; }
  /// Whether the process there has ended, as far as can be seen from here: false on another
  /// machine, or in another container.
  bool deserted(const Place& seen_from) const;
};

}  // namespace wisp
