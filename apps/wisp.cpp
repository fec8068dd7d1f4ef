#include "apps/wisp.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "apps/commands/commands.h"
#include "apps/commands/standard_streams.h"
#include "apps/version.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

constexpr int kUsageError = 2;

int parse_and_run(int argc, char** argv) {
  const bool speaks = world().rank == 0;  // for all processes, until something fails
  WISP_CHECK(speaks || std::freopen("/dev/null", "w", stdout), "cannot open /dev/null");
  CLI::App program("Wisp: data-parallel training over thin wires", "wisp");
  program.set_version_flag("--version", program_version());
  program.require_subcommand(1);
  program.footer(
      "wisp COMMAND --help tells more. Exit status: 0 done, 1 failed, 2 wrong usage, 128 and a "
      "signal's number:\nstopped by it (130: Ctrl-C, 143: SIGTERM).");
  add_train(program);
  add_eval(program);
  add_bench(program);
  add_methods(program);
  add_devices(program);
  add_codec_lab(program);
  add_config(program);
  add_data(program);
  add_plan(program);
  add_predict(program);
  add_generate(program);
  add_score(program);
  add_transcribe(program);
  add_lm(program);
  add_tune_lm(program);
  add_import(program);
  add_export(program);
  add_report(program);
  add_diff(program);
  add_sweep(program);
  add_completion(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (!speaks) return kUsageError;
    return program.exit(error) == 0 ? 0 : kUsageError;  // --help is no error
  }
  return 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  // A file that reaches `ulimit -f` is then an error that names it.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    open_closed_streams();
    const int status = parse_and_run(argc, argv);
    flush_output();
    return status;
  } catch (const ExitStatus& status) {
    return status.value;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    if (const std::string words = last_words(error.what()); !words.empty())
      fmt::print(stderr, "wisp: {}\n", words);
    return 1;
  }
}

}  // namespace wisp
