// Escaping and quoting of text for an HTML page. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace wisp {

/// Escapes everything that HTML or SVG would read as markup, both between tags and in quoted
/// attributes. What is not visible() becomes "?".
std::string html_text(std::string_view text);

/// Whether html_text() leaves every character readable.
bool html_keeps(std::string_view text);

/// Quotes text as one word of a shell command that a page shows, only if necessary. Bytes that
/// html_text() would not keep are written as numeric escapes, which bash and zsh read.
std::string shell_word(const std::string& text);

}  // namespace wisp
