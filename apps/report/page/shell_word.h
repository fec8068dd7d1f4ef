// Quoting of text as one word of a shell command that a page shows. Any thread.
#pragma once

#include <string>

namespace wisp {

/// Quotes only if necessary. Bytes that html_text() would not keep are written as numeric escapes,
/// which bash and zsh read.
std::string shell_word(const std::string& text);

}  // namespace wisp
