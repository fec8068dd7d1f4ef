// The edit distance: the least number of inserted, removed or replaced items that turns one list
// into another. Source: Levenshtein 1966; Wagner and Fischer 1974. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/host_device.h"

namespace wisp {

/// The distance between lists of `of_a` and `of_b` items. same(i, j) says whether item i of the
/// first equals item j of the second. `row` has room for of_b + 1 numbers.
template <class Same>
WISP_HD int64_t edit_distance(int64_t of_a, int64_t of_b, const Same& same, int32_t* row) {
  for (int64_t j = 0; j <= of_b; ++j) row[j] = static_cast<int32_t>(j);
  for (int64_t i = 0; i < of_a; ++i) {
    int32_t diagonal = row[0];  // element of the previous row
    row[0] = static_cast<int32_t>(i + 1);
    for (int64_t j = 0; j < of_b; ++j) {
      const int32_t substituted = diagonal + (same(i, j) ? 0 : 1);
      diagonal = row[j + 1];
      const int32_t moved = (diagonal < row[j] ? diagonal : row[j]) + 1;
      row[j + 1] = moved < substituted ? moved : substituted;
    }
  }
  return row[of_b];
}

/// The distance between the characters of two texts.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace wisp
