// The possible completions of a command line's last word, for a shell. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wisp {

/// `typed`: the words after the program's name; the last one is completed. Returns whole words:
/// commands, options, keys "a.b=" and values "a.b=c"; none where a file is expected.
std::vector<std::string> completions(const CLI::App& program,
                                     const std::vector<std::string>& typed);

}  // namespace wisp
