// A split of a line into words. Any thread.
#pragma once

#include <string_view>
#include <vector>

namespace wisp {

/// The words of `line` between ASCII white space, in order, as views of `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace wisp
