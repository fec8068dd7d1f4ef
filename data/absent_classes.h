// Classes that training never sees: a model gets an output for each of them. Any thread.
#pragma once

#include <string>
#include <vector>

namespace wisp {

/// Adds a notice if a class was not seen: "`where`: 2 of 9 `kind` have no `sample`: ants, bees".
/// It names a few classes; without `names`, their numbers.
void note_absent(std::vector<std::string>& notices, const std::string& where,
                 const std::string& kind, const std::string& sample, const std::vector<bool>& seen,
                 const std::vector<std::string>& names);

}  // namespace wisp
