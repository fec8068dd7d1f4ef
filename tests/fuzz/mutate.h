// Changes that break parsers. A number selects them, so they are the same on every machine. Any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace wisp {

/// Changes one of the seeds in one to four places: bits, lengths and other numbers, and pieces that
/// are cut, repeated, nested, or taken from other seeds. A place gets at most 64 KiB.
std::string mutate(std::span<const std::string> seeds, uint64_t number);

}  // namespace wisp
