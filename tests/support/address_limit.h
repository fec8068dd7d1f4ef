// A temporary limit for this process's addresses, as batch systems set it. One thread at a time.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace wisp {

/// Bytes of addresses in use by the process.
inline int64_t addresses_now() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// Limits the process to `more` bytes beyond its current use, until destruction.
class AddressLimit {
 public:
  explicit AddressLimit(int64_t more) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{static_cast<rlim_t>(addresses_now() + more), before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace wisp
