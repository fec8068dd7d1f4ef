#include <fmt/format.h>

#include <string>

#include "apps/commands/commands.h"
#include "apps/report/run_diff.h"
#include "core/base/error.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

constexpr int kDifferent = 1, kTrouble = 2;  // as in diff(1)

struct DiffArguments {
  std::string a, b;
};

void run_diff(const DiffArguments& arguments) {
  std::string text;
  bool equal = false;
  try {
    const RunRecord a = RunRecord::read(arguments.a), b = RunRecord::read(arguments.b);
    text = diff_text(a, b);
    equal = compare_runs(a, b).equal();
  } catch (const Error& error) {
    write_notice(error.what());
    throw ExitStatus{kTrouble};
  }
  write_out(text);
  if (!equal) throw ExitStatus{kDifferent};
}

}  // namespace

void add_diff(CLI::App& program) {
  const auto [command, arguments] = add_command<DiffArguments>(
      program, "diff", "print the differences between two runs", run_diff);
  command.add_option("run", arguments.a, "run directory")->required();
  command.add_option("other", arguments.b, "run directory to compare with")->required();
  command.footer(R"(Example:
  wisp diff runs/dgc runs/dgc-again
Compares configurations, programs and the records of each step. Times are shown, but do
not count. Exit status: 0 equal, 1 different, 2 trouble.)");
}

}  // namespace wisp
