// How far a misspelled name is from a known one.
#pragma once

#include <cstddef>
#include <string_view>

namespace wisp {

/// The least number of characters inserted, removed or replaced that turns `a` into `b`.
/// Source: Levenshtein 1966.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace wisp
