#include <fmt/format.h>

#include <set>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/reference/config_reference.h"

namespace wisp {
namespace {

/// What may follow the command: its subcommands, its options, and keys if it takes overrides.
std::string words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* next : command.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(next->get_name());
  bool overrides = false;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    overrides = overrides || option->get_name() == "overrides";
  }
  if (overrides) {
    std::set<std::string> keys;
    for (const ConfigKey& key : config_keys()) keys.insert(key.name + "=");
    words.insert(words.end(), keys.begin(), keys.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// A case for the command and one for each below it; `path` is what was typed up to there.
std::string cases(const CLI::App& command, const std::string& path) {
  std::string text = fmt::format("      '{}') words='{}' ;;\n", path, words_after(command));
  for (const CLI::App* next : command.get_subcommands([](const CLI::App*) { return true; }))
    text += cases(*next, path + " " + next->get_name());
  return text;
}

std::string bash_completion(const CLI::App& program) {
  return fmt::format(R"(# bash completion of wisp
_wisp() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} path= words= typed
  for typed in wisp "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    path+=${{path:+ }}$typed
    case $path in
{}      *) break ;;
    esac
  done
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" || compgen -f -- "$word")
  [[ ${{COMPREPLY[0]-}} != *= ]] || compopt -o nospace 2>/dev/null
}}
complete -o filenames -F _wisp wisp
)",
                     cases(program, "wisp"));
}

}  // namespace

void add_completion(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("completion", "print completions for a shell");
  command.footer(
      "Example:\n  wisp completion bash > ~/.local/share/bash-completion/completions/wisp");
  command.add_option("shell", "whose completion")->required()->check(CLI::IsMember({"bash"}));
  command.callback([&program] { fmt::print("{}", bash_completion(program)); });
}

}  // namespace wisp
