// Functions that run and inspect other programs. Any thread.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "tests/support/temp_dir.h"

namespace wisp {

struct CommandResult {
  int status = 0;      // exit status, or 128 + signal
  std::string output;  // stdout, and stderr unless run apart
  std::string errors;  // stderr, if run apart
  double seconds = 0.0;
};

/// Runs `command` in a shell.
inline CommandResult run_command(const std::string& command) {
  CommandResult result;
  const double begin = now_us();
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  WISP_CHECK(pipe, "cannot run ", command);
  std::array<char, 4096> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), pipe))
    result.output.append(part.data(), got);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = (now_us() - begin) * 1e-6;
  return result;
}

/// Runs `command` with stderr in `errors`, because a launcher and the machine's libraries may write
/// there too.
inline CommandResult run_command_apart(const std::string& command) {
  const TempDir dir;
  const std::string errors = dir / "stderr";
  CommandResult result = run_command("{ { " + command + "; } 2>" + errors + "; }");
  result.errors = read_text(errors);
  return result;
}

/// Whether a process currently has a handler for the signal.
inline bool catches(pid_t process, int signal) {
  const std::string status = read_text(concat("/proc/", process, "/status"));
  const std::string field = "SigCgt:\t";
  const size_t at = status.find(field);
  return at != std::string::npos &&
         std::stoull(status.substr(at + field.size()), nullptr, 16) >> (signal - 1) & 1;
}

}  // namespace wisp
