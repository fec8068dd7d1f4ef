#include "core/io/saved_state.h"

#include <string_view>

#include "core/base/error.h"
#include "core/base/number.h"

namespace wisp {

std::string part_name(const TensorPart& part) {
  return concat(part.whole, "[", part.begin, ":", part.end, "]");
}

std::optional<TensorPart> part_of_name(const std::string& name) {
  const std::string_view text = name;
  const size_t open = text.rfind('['), colon = text.rfind(':');
  if (open == std::string::npos || colon == std::string::npos || colon < open || text.back() != ']')
    return std::nullopt;
  const auto begin = number_in<int64_t>(text.substr(open + 1, colon - open - 1));
  const auto end = number_in<int64_t>(text.substr(colon + 1, text.size() - colon - 2));
  if (!begin || !end || *begin < 0 || *end < *begin) return std::nullopt;
  return TensorPart{name.substr(0, open), *begin, *end};
}

}  // namespace wisp
