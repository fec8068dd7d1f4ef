// The program `wisp` as a user starts it. The test's sources are compiled with its path,
// WISP_PROGRAM.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace wisp {

/// An endless run whose steps take no time.
constexpr const char* kEndlessConfig = R"(
threads = 1
workers = 2
model.name = "mlp"
data = { name = "synthetic", train_count = 128, test_count = 40 }
train = { batch = 32, epochs = 1000000, log_every = 1 }
optimizer.lr = 1e-4
)";

class Program : public testing::Test {
 protected:
  /// Starts `wisp ARGUMENTS…`. Its output goes to a file of the test.
  void start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), WISP_PROGRAM);
    start_command(std::move(arguments));
  }
  void start_command(std::vector<std::string> command) {
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output().c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    ASSERT_EQ(posix_spawn(&child_, words[0], &actions, nullptr, words.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  /// The exit status as a shell reports it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  int run(std::vector<std::string> arguments) {
    start(std::move(arguments));
    return wait();
  }
  void signal(int number) const { kill(child_, number); }
  /// Runs a command that sees the test's directory on a file system mounted read-only.
  int run_read_only(const std::vector<std::string>& command) {
    std::vector<std::string> words = {
        "/usr/bin/unshare",
        "--mount",
        "sh",
        "-c",
        "mount --bind $0 $0 && mount -o remount,ro,bind $0 && exec \"$@\"",
        dir_ / ""};
    words.insert(words.end(), command.begin(), command.end());
    start_command(words);
    return wait();
  }
  std::string output() const { return dir_ / "output.txt"; }
  std::string said() const { return read_text(output()); }
  std::string config() const { return dir_.write("endless.toml", kEndlessConfig); }
  /// Waits until the child has completed steps.
  void await_steps() const {
    while (read_text(dir_ / "run/metrics.jsonl").empty()) usleep(1000);
  }

  TempDir dir_;
  pid_t child_ = -1;
};

}  // namespace wisp
