// A terminal for tests, of which a child process gets the name. One thread at a time.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace wisp {

/// Why a test that needs one is skipped.
inline constexpr const char* kNoTerminal =
    "no pseudo terminal can be opened: is /dev/pts mounted here?";

/// The terminal is closed by the destructor.
class PseudoTerminal {
 public:
  PseudoTerminal() : descriptor_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    opened_ = descriptor_ >= 0 && grantpt(descriptor_) == 0 && unlockpt(descriptor_) == 0 &&
              access(name().c_str(), R_OK | W_OK) == 0;
  }
  ~PseudoTerminal() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  /// False without /dev/pts, as in some containers.
  bool opened() const { return opened_; }
  int descriptor() const { return descriptor_; }
  std::string name() const {
    const char* name = ptsname(descriptor_);
    return name ? name : "";
  }

 private:
  int descriptor_;
  bool opened_ = false;
};

}  // namespace wisp
