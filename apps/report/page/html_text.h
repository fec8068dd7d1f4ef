// Text in a page of HTML.
#pragma once

#include <string>
#include <string_view>

namespace wisp {

/// The text with everything that HTML or SVG would read as markup escaped; right between tags and
/// in quoted attributes. Bytes that are not UTF-8 and control characters become "?".
std::string html_text(std::string_view text);

/// Whether html_text() leaves every character readable.
bool html_keeps(std::string_view text);

}  // namespace wisp
