#include "apps/wisp.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/version.h"
#include "core/base/edit_distance.h"
#include "core/io/output_streams.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

constexpr int kUsageError = 2;

/// The command named last; the program's own parser if there was none.
const CLI::App& named_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

/// The nearest command or option to an unknown one; empty if none is similar.
std::string nearest(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* next : command.get_subcommands([](const CLI::App*) { return true; }))
    if (!next->get_group().empty()) names.push_back(next->get_name());
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const bool is_option = word.starts_with('-');
  std::erase_if(names, [=](const std::string& name) { return name.starts_with('-') != is_option; });
  const auto distance_to = [&](const std::string& name) { return edit_distance(word, name); };
  const auto best = std::ranges::min_element(names, {}, distance_to);
  return best != names.end() && distance_to(*best) < word.size() ? *best : "";
}

/// Prints what the parser says: help and versions, or an error.
int tell(const CLI::App& program, const CLI::ParseError& error) {
  std::ostringstream out, errors;
  const int status = program.exit(error, out, errors);
  write_out(out.str());
  write_usage(errors.str());
  return status;
}

/// Reports an error in the command line; for a command that only has subcommands, prints its help.
int explain(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = named_command(program);
  const std::vector<std::string> unknown = command.remaining();
  const bool chooses = command.get_require_subcommand_min() > 0;
  if (chooses && unknown.empty() && error.get_name() == "RequiredError") {
    write_usage(program.help());
  } else if (!unknown.empty() && (chooses || unknown.front().starts_with('-'))) {
    const std::string meant = nearest(command, unknown.front());
    write_usage(fmt::format("unknown {} '{}'{}\nRun with --help for more information.\n",
                            unknown.front().starts_with('-') ? "option" : "command",
                            unknown.front(),
                            meant.empty() ? "" : "; did you mean '" + meant + "'?"));
  } else {
    tell(program, error);
  }
  return kUsageError;
}

/// Opens /dev/null for each of 0, 1 and 2 that the parent closed; otherwise the next opened file
/// would take the number and receive output. Called before anything else is opened.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one
    const int opened = open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    WISP_CHECK(opened == stream, "cannot open /dev/null: ", std::strerror(errno));
  }
}

int parse_and_run(int argc, char** argv) {
  const bool speaks = world().rank == 0;  // rank 0 speaks for all processes, until something fails
  WISP_CHECK(speaks || std::freopen("/dev/null", "w", stdout), "cannot open /dev/null");
  CLI::App program("Wisp: data-parallel training over thin wires", "wisp");
  program.set_version_flag("--version", program_version());
  program.require_subcommand(1);
  program.footer(
      "wisp COMMAND --help shows its options. Exit status: 0 done, 1 failed, 2 wrong usage, 128 + "
      "the number of a signal\nthat stopped the program (130: Ctrl-C, 143: SIGTERM).");
  for (const auto add :
       {add_train,  add_eval,       add_bench, add_methods, add_devices,   add_codec_lab,
        add_config, add_data,       add_pack,  add_plan,    add_predict,   add_generate,
        add_score,  add_transcribe, add_lm,    add_tune_lm, add_import,    add_export,
        add_report, add_diff,       add_sweep, add_table,   add_completion})
    add(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (!speaks) return kUsageError;
    return error.get_exit_code() == 0 ? tell(program, error)
                                      : explain(program, error);  // --help: 0
  }
  return 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  // A write beyond `ulimit -f` then fails with an error that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  // So does a write whose reader has gone; work goes on without its log.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    open_closed_streams();
    return parse_and_run(argc, argv);
  } catch (const ExitStatus& status) {
    return status.value;
  } catch (const ReaderGone&) {  // has read enough, as `head` does
    return ExitStatus::kBySignal + SIGPIPE;
  } catch (const std::exception& error) {
    if (const std::string words = last_words(error.what()); !words.empty()) write_notice(words);
    return 1;
  }
}

}  // namespace wisp
