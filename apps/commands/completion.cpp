#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/completion_words.h"

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

/// Adds the command that the shells' functions call.
void add_complete(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("complete", "print the completions of a word, one per line");
  command.group("");  // no help shows it
  const auto typed = std::make_shared<std::vector<std::string>>();
  command.add_option("typed", *typed, "words after the program's name");
  command.callback([&program, typed] {
    for (const std::string& word : completions(program, *typed)) fmt::print("{}\n", word);
  });
}

}  // namespace

void add_completion(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("completion", "print completions for a shell");
  command.footer(
      "Examples:\n"
      "  wisp completion bash > ~/.local/share/bash-completion/completions/wisp\n"
      "  wisp completion zsh > ~/.zsh/completions/_wisp      # a folder of $fpath\n"
      "  wisp completion fish > ~/.config/fish/completions/wisp.fish");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "shell of the completions")
      ->required()
      ->check(CLI::IsMember({"bash", "fish", "zsh"}));
  command.callback([shell] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
  });
  add_complete(program);
}

}  // namespace wisp
