#include "core/base/edit_distance.h"

#include <vector>

namespace wisp {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int32_t> row(b.size() + 1);
  const auto same = [&](int64_t i, int64_t j) {
    return a[static_cast<size_t>(i)] == b[static_cast<size_t>(j)];
  };
  return static_cast<size_t>(edit_distance(std::ssize(a), std::ssize(b), same, row.data()));
}

}  // namespace wisp
