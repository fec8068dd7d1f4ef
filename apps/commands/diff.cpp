#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "apps/commands/commands.h"
#include "apps/report/run_diff.h"
#include "core/base/error.h"

namespace wisp {
namespace {

constexpr int kDifferent = 1, kTrouble = 2;

struct DiffArguments {
  std::string a, b;
};

/// Prints the differences and returns the exit status.
int run_diff(const DiffArguments& arguments) {
  try {
    const RunRecord a = RunRecord::read(arguments.a), b = RunRecord::read(arguments.b);
    fmt::print("{}", diff_text(a, b));
    return compare_runs(a, b).equal() ? 0 : kDifferent;
  } catch (const Error& error) {
    fmt::print(stderr, "wisp: {}\n", error.what());
    return kTrouble;  // as in diff(1)
  }
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("diff", "print the differences between two runs");
  const auto arguments = std::make_shared<DiffArguments>();
  command.add_option("run", arguments->a, "run directory")->required();
  command.add_option("other", arguments->b, "run directory to compare with")->required();
  command.footer(R"(Example:
  wisp diff runs/dgc runs/dgc-again
Compares configurations, programs and the records of each step. Times are shown, but do
not count. Exit status: 0 equal, 1 different, 2 trouble.)");
  command.callback([arguments] {
    if (const int status = run_diff(*arguments)) throw ExitStatus{status};
  });
}

}  // namespace wisp
