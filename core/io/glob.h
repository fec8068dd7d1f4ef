// Glob patterns over the dotted names of parameters. Any thread.
#pragma once

#include <string_view>

namespace wisp {

/// Whether `pattern` matches the whole of `text`. * stands for any characters (also dots), ? for
/// one character, and any other character for itself.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace wisp
