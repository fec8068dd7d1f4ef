// Text in UTF-8.
#pragma once

#include <string_view>
#include <vector>

namespace wisp {

/// Throws Error with the place of the first byte that is no UTF-8.
void check_utf8(std::string_view text);

/// The characters of a text in UTF-8, views of it.
std::vector<std::string_view> characters_of(std::string_view text);

}  // namespace wisp
