#include "apps/sweep/children.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

/// Opens a file under a given number. Returns false if it cannot.
bool open_as(int number, const char* path, int how) {
  const int opened = open(path, how, 0644);
  if (opened < 0 || opened == number) return opened == number;
  const bool done = dup2(opened, number) == number;
  close(opened);
  return done;
}

/// The start conditions of a child: no input, output to a file, default signals, its own process
/// group or session, and an end with this process.
struct Beginning {
  int log;  // descriptor
  char* const* command;
  char* const* variables;  // the environment
  const sigset_t& mask;
  const sigset_t& defaults;
  bool own_session;
  pid_t parent;

  /// Makes a copy of this process the program. Only returns if it cannot; errno says why. All its
  /// calls are allowed in a copy of a process that has threads.
  void become() const {
    if ((own_session ? setsid() : setpgid(0, 0)) < 0) return;
    // The system tells it when this process ends without a word; then it saves and stops.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return;
    if (getppid() != parent) _exit(128 + SIGTERM);  // it has ended before it could be watched
    for (int number = 1; number < NSIG; ++number) {
      if (number == SIGPIPE || sigismember(&defaults, number) == 1) signal(number, SIG_DFL);
    }
    if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
        !open_as(STDIN_FILENO, "/dev/null", O_RDONLY) ||
        sigprocmask(SIG_SETMASK, &mask, nullptr) != 0)
      return;
    execve(command[0], command, variables);
  }
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

/// Pointers to the texts, and a null behind them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Starts a process. Returns its number; -1 with the reason in errno if it cannot.
pid_t start_process(const Beginning& beginning) {
  int told[2];  // a child that could not start writes why; a start closes it
  if (pipe2(told, O_CLOEXEC) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    beginning.become();
    const int reason = errno;
    const bool said = write(told[1], &reason, sizeof reason) == sizeof reason;
    _exit(said ? 127 : 126);
  }
  int reason = pid < 0 ? errno : 0;
  close(told[1]);
  if (pid > 0) {
    while (read(told[0], &reason, sizeof reason) < 0 && errno == EINTR) continue;
    if (reason != 0) waitpid(pid, nullptr, 0);
  }
  close(told[0]);
  errno = reason;
  return reason == 0 ? pid : -1;
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
  for (const auto& [id, pid] : children_) kill(pid, SIGTERM);
  while (running() > 0) wait();  // they save
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Children::start(size_t id, std::vector<std::string> command, const std::string& log,
                     const std::string& variable) {
  const OutputFile output(log, OutputFile::Mode::append);
  std::vector<std::string> variables = environment_with(variable);
  const pid_t pid = start_process({.log = output.descriptor(),
                                   .command = pointers_to(command).data(),
                                   .variables = pointers_to(variables).data(),
                                   .mask = before_,
                                   .defaults = watched_,
                                   .own_session = niceness_ > 0,
                                   .parent = getpid()});
  const int failure = pid > 0 ? 0 : errno;
  check(failure, "cannot start " + command.front() + " with its output to " + log);
  if (niceness_ > 0) make_nice(pid, niceness_);
  children_.emplace_back(id, pid);
}

Children::Ended Children::wait() {
  WISP_CHECK(!children_.empty(), "Children: nothing runs that could be waited for");
  for (;;) {
    for (auto child = children_.begin(); child != children_.end(); ++child) {
      int status = 0;
      if (waitpid(child->second, &status, WNOHANG) != child->second) continue;
      const bool killed = WIFSIGNALED(status);
      const Ended ended{child->first, killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                        killed};
      children_.erase(child);
      return ended;
    }
    const int number = sigwaitinfo(&watched_, nullptr);
    if (number < 0 || number == SIGCHLD) continue;
    signalled_ = number;
    for (const auto& [id, pid] : children_) kill(pid, number);
  }
}

std::string Children::Ended::how() const {
  if (!killed) return concat("status ", status);
  const int number = status - 128;
  return concat("killed by signal ", number, ", ", strsignal(number),
                number == SIGKILL ? ", as where memory is full" : "");
}

std::string last_line(const std::string& log, int64_t from) {
  constexpr int64_t kMost = int64_t{1} << 16;  // a child may have written without line ends
  std::error_code ignored;                     // opening the file reports it
  if (!std::filesystem::exists(log, ignored)) return "";
  const RandomAccessFile file(log);
  from = std::max(from, file.bytes() - kMost);
  if (from >= file.bytes()) return "";
  std::string end(static_cast<size_t>(file.bytes() - from), '\0');
  file.read(end.data(), std::ssize(end), from);
  std::string_view last;
  for (std::string_view rest = end; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (!line.empty()) last = line;
  }
  return std::string(last);
}

}  // namespace wisp
