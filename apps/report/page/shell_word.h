// A text as a word of a command that is shown on a page.
#pragma once

#include <string>

namespace wisp {

/// Quoted only if it must be. Bytes that html_text() would not keep stand as their numbers, which
/// bash and zsh read.
std::string shell_word(const std::string& text);

}  // namespace wisp
