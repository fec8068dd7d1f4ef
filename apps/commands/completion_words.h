// The words that the last one of a command line can become, for a shell's completion.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wisp {

/// `typed`: the words behind the program's name, of which the last is completed. Commands, options,
/// keys "a.b=" and values "a.b=c", each in place of the whole word; none where a file is meant.
std::vector<std::string> completions(const CLI::App& program,
                                     const std::vector<std::string>& typed);

}  // namespace wisp
