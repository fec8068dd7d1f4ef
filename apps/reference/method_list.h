// Lists of the compression methods and of their options, for the command line. Any thread.
#pragma once

#include <string>

namespace wisp {

/// One line per compression method, with its paper.
std::string list_methods();
/// One method's options: key, type, default, meaning. Throws Error listing the known methods if
/// there is no `name`.
std::string describe_method(const std::string& name);

}  // namespace wisp
