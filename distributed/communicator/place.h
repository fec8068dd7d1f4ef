// The place of a rank's process: machine, cores, process name space and number, as plain bytes that
// can be sent to other ranks. A value; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace wisp {

struct Place {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};   // boot id of the machine's kernel; unique among machines
  uint64_t process_numbers = 0;  // name space of `process`
  int64_t process = 0;
  std::array<uint64_t, 16> cores{};  // a bit for each core that it is bound to

  static Place own();
  bool same_machine(const Place& other) const { return boot == other.boot && host == other.host; }
  /// Whether this process is known to have ended. False where it cannot be seen: on another machine
  /// or in another container.
  bool deserted(const Place& seen_from) const;
};

}  // namespace wisp
