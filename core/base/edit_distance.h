// The edit distance: the least number of inserted, removed or replaced items that turns one list
// into another. Source: Levenshtein 1966; Wagner and Fischer 1974. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/host_device.h"

namespace wisp {

enum class Edit : uint8_t { correct, substitution, deletion, insertion };

struct NoteNothing {
  WISP_HD void operator()(int64_t, int64_t, Edit) const {}
};

/// The distance between lists of `of_a` and `of_b` items. same(i, j) says whether item i of the
/// first equals item j of the second. `row` has room for of_b + 1 numbers. note(i, j, edit) gets
/// the last of the fewest edits that turn items 0 to i into items 0 to j. Of equally few it is
/// correct or a substitution, else a deletion.
template <class Same, class Note = NoteNothing>
WISP_HD int64_t edit_distance(int64_t of_a, int64_t of_b, const Same& same, int32_t* row,
                              const Note& note = {}) {
  for (int64_t j = 0; j <= of_b; ++j) row[j] = static_cast<int32_t>(j);
  for (int64_t i = 0; i < of_a; ++i) {
    int32_t diagonal = row[0];  // element of the previous row
    row[0] = static_cast<int32_t>(i + 1);
    for (int64_t j = 0; j < of_b; ++j) {
      const bool equal = same(i, j);
      const int32_t replaced = diagonal + (equal ? 0 : 1);
      const int32_t deleted = row[j + 1] + 1, inserted = row[j] + 1;
      diagonal = row[j + 1];
      const int32_t moved = deleted < inserted ? deleted : inserted;
      row[j + 1] = moved < replaced ? moved : replaced;
      note(i, j,
           row[j + 1] == replaced  ? equal ? Edit::correct : Edit::substitution
           : row[j + 1] == deleted ? Edit::deletion
                                   : Edit::insertion);
    }
  }
  return row[of_b];
}

/// The distance between the characters of two texts.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace wisp
