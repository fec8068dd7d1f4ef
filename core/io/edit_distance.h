// The edit distance between two texts, which finds the known name nearest to a misspelled one. Any
// thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace wisp {

/// The least number of inserted, removed or replaced characters that turns `a` into `b`. Source:
/// Levenshtein 1966.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace wisp
