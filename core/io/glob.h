// Patterns over the dotted names of parameters.
#pragma once

#include <string_view>

namespace wisp {

/// Whether the whole of `text` fits `pattern`: * any characters (dots too), ? one, others
/// themselves.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace wisp
