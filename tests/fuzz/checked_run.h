// A checked run of fuzz(): its exceptions, its memory and its leaks are findings. One thread.
#pragma once

#include <string_view>

namespace wisp {

/// Prints a finding and aborts if fuzz() throws, takes more memory than fuzz_memory(), or leaks.
void checked_run(std::string_view input);

}  // namespace wisp
