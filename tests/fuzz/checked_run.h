// One run of fuzz(), watched: its exceptions, the memory it takes, and what it does not give back.
#pragma once

#include <string_view>

namespace wisp {

/// Prints what was found and aborts if fuzz() throws, takes more memory than fuzz_memory(), or
/// leaks.
void checked_run(std::string_view input);

}  // namespace wisp
