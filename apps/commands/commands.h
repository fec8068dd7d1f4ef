// The subcommands of the program, one file each. Each function adds a parser to the program's; the
// subcommand runs once the command line is read. It fails by an exception; ExitStatus ends the
// program with another status. Called from the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

namespace wisp {

struct ExitStatus {
  static constexpr int kBySignal = 128;  // plus the signal's number, as shells report it

  int value = 0;
};

/// Adds a subcommand that calls run(arguments). Its options fill the arguments, which live as long
/// as it does.
template <class Arguments, class Run>
std::pair<CLI::App&, Arguments&> add_command(CLI::App& parent, const std::string& name,
                                             const std::string& meaning, const Run& run) {
  CLI::App& command = *parent.add_subcommand(name, meaning);
  const auto arguments = std::make_shared<Arguments>();
  command.callback([arguments, run] { run(*arguments); });
  return {command, *arguments};
}

/// Adds an option with its default in the help.
template <class Value>
CLI::Option& add_with_default(CLI::App& command, const std::string& name, Value& value,
                              const std::string& meaning) {
  return *command.add_option(name, value, meaning)->capture_default_str();
}

/// Such an option for a number in `range`.
template <class Number>
CLI::Option& add_number(CLI::App& command, const std::string& name, Number& value,
                        const std::string& meaning, const CLI::Validator& range) {
  return *add_with_default(command, name, value, meaning).check(range);
}

void add_train(CLI::App& program);
void add_eval(CLI::App& program);
void add_predict(CLI::App& program);
void add_generate(CLI::App& program);
void add_score(CLI::App& program);
void add_lm(CLI::App& program);
void add_transcribe(CLI::App& program);
void add_tune_lm(CLI::App& program);
void add_bench(CLI::App& program);
void add_methods(CLI::App& program);
void add_devices(CLI::App& program);
void add_codec_lab(CLI::App& program);
void add_config(CLI::App& program);
void add_data(CLI::App& program);
void add_plan(CLI::App& program);
void add_import(CLI::App& program);
void add_export(CLI::App& program);
void add_report(CLI::App& program);
void add_diff(CLI::App& program);
void add_pack(CLI::App& program);
void add_sweep(CLI::App& program);
void add_table(CLI::App& program);
void add_completion(CLI::App& program);

}  // namespace wisp
