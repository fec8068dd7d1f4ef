#include "apps/sweep/children.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/base/error.h"
#include "core/base/stopping_signals.h"
#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

void check(int failure, const std::string& what) {
  WISP_CHECK(failure == 0, what, ": ", std::strerror(failure));
}

/// The start conditions of a child: no input, output to a file, default signals, its own process
/// group, or its own session.
struct Beginning {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  Beginning(const OutputFile& log, const sigset_t& mask, const sigset_t& defaults,
            bool own_session) {
    check(posix_spawn_file_actions_init(&files), "cannot start a process");
    check(posix_spawnattr_init(&attributes), "cannot start a process");
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, log.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int group = own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(
        &attributes, static_cast<int16_t>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  }
  ~Beginning() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;
};

/// This process's environment with `variable`, "NAME=VALUE", in the place of one of its name.
std::vector<std::string> environment_with(const std::string& variable) {
  const std::string beginning = variable.substr(0, variable.find('=') + 1);
  std::vector<std::string> variables;
  for (char** each = environ; each && *each; ++each)
    if (beginning.empty() || !std::string_view(*each).starts_with(beginning))
      variables.emplace_back(*each);
  if (!variable.empty()) variables.push_back(variable);
  return variables;
}

/// Makes a child yield, which leads its session. Where the kernel weighs sessions before processes
/// (sched_autogroup), the session's niceness counts. The kernel takes only one of those in a tenth
/// of a second from a user.
void make_nice(pid_t pid, int niceness) {
  setpriority(PRIO_PGRP, static_cast<id_t>(pid), niceness);
  const std::string session = concat("/proc/", pid, "/autogroup");
  for (int tries = 0; tries < 3 && access(session.c_str(), W_OK) == 0; ++tries) {
    if (std::ofstream(session) << niceness << std::flush) break;
    usleep(110'000);
  }
}

}  // namespace

Children::Children(int niceness) : niceness_(niceness) {
  signal(SIGCHLD, SIG_DFL);  // if it stays ignored, as a parent may leave it, ends are not reported
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGCHLD);
  for (const int number : stopping_signals()) sigaddset(&watched_, number);
  check(pthread_sigmask(SIG_BLOCK, &watched_, &before_), "cannot block signals");
}

Children::~Children() {
  for (const auto& [id, pid] : children_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Children::start(size_t id, std::vector<std::string> command, const std::string& log,
                     const std::string& variable) {
  const OutputFile output(log, OutputFile::Mode::append);
  const Beginning beginning(output, before_, watched_, niceness_ > 0);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<std::string> kept = environment_with(variable);
  std::vector<char*> variables;
  for (std::string& each : kept) variables.push_back(each.data());
  variables.push_back(nullptr);
  pid_t pid = 0;
  check(posix_spawn(&pid, command.front().c_str(), &beginning.files, &beginning.attributes,
                    arguments.data(), variables.data()),
        "cannot start " + command.front() + " with its output to " + log);
  if (niceness_ > 0) make_nice(pid, niceness_);
  children_.emplace_back(id, pid);
}

Children::Ended Children::wait() {
  WISP_CHECK(!children_.empty(), "Children: nothing runs that could be waited for");
  for (;;) {
    for (auto child = children_.begin(); child != children_.end(); ++child) {
      int status = 0;
      if (waitpid(child->second, &status, WNOHANG) != child->second) continue;
      const Ended ended{child->first,
                        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
      children_.erase(child);
      return ended;
    }
    const int number = sigwaitinfo(&watched_, nullptr);
    if (number < 0 || number == SIGCHLD) continue;
    signalled_ = number;
    for (const auto& [id, pid] : children_) kill(pid, number);
  }
}

std::string last_line(const std::string& log) {
  constexpr int64_t kMost = int64_t{1} << 16;  // a child may have written without line ends
  std::error_code ignored;                     // opening the file reports it
  if (!std::filesystem::exists(log, ignored)) return "";
  const RandomAccessFile file(log);
  std::string end(static_cast<size_t>(std::min(file.bytes(), kMost)), '\0');
  file.read(end.data(), std::ssize(end), file.bytes() - std::ssize(end));
  std::string_view last;
  for (std::string_view rest = end; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (!line.empty()) last = line;
  }
  return std::string(last);
}

}  // namespace wisp
