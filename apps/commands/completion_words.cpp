#include "apps/commands/completion_words.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/reference/config_reference.h"
#include "apps/setup/methods.h"
#include "apps/table/table_file.h"

namespace wisp {
namespace {

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

/// "--name" or "-n"; null if the command has no such option.
const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_name(name) && !option->get_positional()) return option;
  }
  return nullptr;
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
  for (const std::string& value : values_of_key(word.substr(0, equals)))
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
      position.option = find_option(*position.command, word);
      if (position.option && position.option->get_items_expected_max() == 0)
        position.option = nullptr;
      continue;
    }
    if (position.option) {
      if (position.option->get_items_expected_max() == 1) position.option = nullptr;
      continue;
    }
    const auto next = commands_of(*position.command);
    const auto found = std::find_if(next.begin(), next.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
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
    if (const CLI::Option* option = find_option(command, word.substr(0, equals))) {
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

}  // namespace

std::vector<std::string> completions(const CLI::App& program,
                                     const std::vector<std::string>& typed) {
  if (typed.empty()) return {};
  Words words = candidates(position_of(program, typed), typed.back());
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(typed.back()); });
  return words;
}

}  // namespace wisp
