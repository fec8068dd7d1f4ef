#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/reference/config_reference.h"
#include "apps/setup/methods.h"
#include "apps/table/table_file.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

/// Bash also ends a word at "=", and replaces only the part after it.
constexpr const char* kBash = R"(# bash completion of wisp
_wisp() {
  local typed=() word= part before= glued=
  for part in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $part == = || $glued ]]; then
      word+=$part
    else
      [[ $before ]] && typed+=("$word")
      word=$part before=yes
    fi
    glued=
    [[ $part == = ]] && glued=yes
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]/#\~/$HOME}" complete -- "${typed[@]}" "$word" 2>/dev/null)
  local behind=$word
  [[ $COMP_WORDBREAKS == *=* ]] && behind=${word##*=}
  if ((${#COMPREPLY[@]} == 0)); then
    mapfile -t COMPREPLY < <(compgen -f -- "$behind")
    compopt -o filenames 2>/dev/null
    return
  fi
  [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
  COMPREPLY=("${COMPREPLY[@]#"${word%"$behind"}"}")
}
complete -F _wisp wisp
)";

constexpr const char* kZsh = R"(#compdef wisp
# zsh completion of wisp
_wisp() {
  local -a typed found
  typed=("${(@Q)words[2,CURRENT-1]}")
  found=("${(@f)$(${~words[1]} complete -- "${typed[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
  if [[ -z $found ]]; then
    compset -P '*='
    _files
    return
  fi
  compadd -S '' -- "${(@M)found:#*=}"
  compadd -- "${(@)found:#*=}"
}
if [[ ${funcstack[1]} == _wisp ]]; then
  _wisp
else
  compdef _wisp wisp
fi
)";

constexpr const char* kFish = R"(# fish completion of wisp
function __wisp_complete
  set -l typed (commandline -opc)
  set -l word (commandline -ct)
  set -l found (command $typed[1] complete -- $typed[2..-1] "$word" 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    set -l before (string match -r '.*=' -- "$word")
    for path in (__fish_complete_path (string replace -r '.*=' '' -- "$word"))
      echo "$before$path"
    end
  end
end
complete -c wisp -f -a '(__wisp_complete)'
)";

using Words = std::vector<std::string>;

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

/// Whether help shows the command or option.
template <class Named>
bool is_shown(const Named& named) {
  return !named.get_group().empty();
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* next) { return is_shown(*next); });
}

/// The positional argument with this number; the last one may take many.
const CLI::Option* find_argument(const CLI::App& command, int number) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_items_expected_max() > 1 || number == 0) return option;
    --number;
  }
  return nullptr;
}

Words keys() {
  std::set<std::string> names;
  for (const ConfigKey& key : config_keys()) names.insert(key.name + "=");
  return {names.begin(), names.end()};
}

/// Completions of "a.b=c"; `list`: several values with commas are allowed.
Words overrides(const std::string& word, bool list) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return keys();
  const size_t comma = list ? word.rfind(',') : word.npos;
  const std::string before =
      word.substr(0, 1 + (comma != word.npos ? std::max(equals, comma) : equals));
  Words words;
  for (const std::string& value : words_of_key(word.substr(0, equals)))
    words.push_back(before + value);
  return words;
}

/// The words of an option that CLI11 describes as "TEXT:{bash,fish,zsh}".
Words choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == type.npos || close == type.npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

Words table_names() {
  Words names;
  for (const std::string& path : known_tables())
    names.push_back(std::filesystem::path(path).stem().string());
  return names;
}

Words values_of(const CLI::App& command, const CLI::Option& option, const std::string& word) {
  const std::string name = option.get_name(false, true);
  if (name == "overrides" || (name == "files" && !word.empty()))
    return overrides(word, command.get_name() == "sweep");
  if (name.find("method") != name.npos) return method_names();
  if (name == "table") return table_names();
  return choices(option);
}

/// The place of the last word, after the words before it are parsed as the program would.
struct Position {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  // option whose value it is
  int argument = 0;                     // else its index among the command's arguments
};

Position position_of(const CLI::App& program, const Words& typed) {
  Position position{&program};
  for (size_t i = 0; i + 1 < typed.size(); ++i) {
    const std::string& word = typed[i];
    if (is_option(word)) {
      position.option = position.command->get_option_no_throw(word);
      if (position.option && position.option->get_items_expected_max() == 0)
        position.option = nullptr;
      continue;
    }
    if (position.option) {
      if (position.option->get_items_expected_max() == 1) position.option = nullptr;
      continue;
    }
    const auto next = commands_of(*position.command);
    const auto found = std::ranges::find(next, word, &CLI::App::get_name);
    if (found == next.end()) {
      ++position.argument;
    } else {
      position = {*found};
    }
  }
  return position;
}

Words candidates(const Position& position, const std::string& word) {
  const CLI::App& command = *position.command;
  Words words;
  const size_t equals = word.find('=');
  if (is_option(word) && equals != word.npos) {
    if (const CLI::Option* option = command.get_option_no_throw(word.substr(0, equals))) {
      for (const std::string& value : values_of(command, *option, word.substr(equals + 1)))
        words.push_back(word.substr(0, equals + 1) + value);
    }
  } else if (is_option(word) || word == "-") {
    for (const CLI::Option* option : command.get_options()) {
      if (!is_shown(*option)) continue;
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
  } else if (position.option) {
    words = values_of(command, *position.option, word);
  } else {
    for (const CLI::App* next : commands_of(command)) words.push_back(next->get_name());
    if (const CLI::Option* argument = find_argument(command, position.argument)) {
      const Words values = values_of(command, *argument, word);
      words.insert(words.end(), values.begin(), values.end());
    }
  }
  return words;
}

/// `typed`: the words after the program's name; the last one is completed. Returns whole words:
/// commands, options, keys "a.b=" and values "a.b=c"; none where a file is expected.
Words completions(const CLI::App& program, const Words& typed) {
  if (typed.empty()) return {};
  Words words = candidates(position_of(program, typed), typed.back());
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(typed.back()); });
  return words;
}

/// Adds the command that the shells' functions call.
void add_complete(CLI::App& program) {
  const auto print_completions = [&program](const Words& typed) {
    for (const std::string& word : completions(program, typed))
      write_out(fmt::format("{}\n", word));
  };
  const auto [command, typed] = add_command<Words>(
      program, "complete", "print the completions of a word, one per line", print_completions);
  command.group("");  // no help shows it
  command.add_option("typed", typed, "words after the program's name");
}

}  // namespace

void add_completion(CLI::App& program) {
  const auto print_script = [](const std::string& shell) {
    write_out(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  };
  const auto [command, shell] = add_command<std::string>(
      program, "completion", "print completions for a shell", print_script);
  command.footer(R"(Examples:
  wisp completion bash > ~/.local/share/bash-completion/completions/wisp
  wisp completion zsh > ~/.zsh/completions/_wisp      # a folder of $fpath
  wisp completion fish > ~/.config/fish/completions/wisp.fish)");
  command.add_option("shell", shell, "shell of the completions")
      ->required()
      ->check(CLI::IsMember({"bash", "fish", "zsh"}));
  add_complete(program);
}

}  // namespace wisp
