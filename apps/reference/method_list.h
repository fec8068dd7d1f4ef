// What there is to choose from, for the command line.
#pragma once

#include <string>

namespace wisp {

/// Every compression method, a line each, with its paper.
std::string list_methods();
/// One method's options: key, type, default, meaning. Throws Error listing the known methods if
/// there is no `name`.
std::string describe_method(const std::string& name);

}  // namespace wisp
