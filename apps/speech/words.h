// A line's words. Any thread may call.
#pragma once

#include <string_view>
#include <vector>

namespace wisp {

/// What stands between white space of ASCII, in its order; views of `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace wisp
