// Changes that break parsers, drawn by number: the same ones on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace wisp {

/// One of the seeds, changed in one to four places: bits, lengths and other numbers, pieces cut,
/// repeated, nested, or taken from other seeds. What is put in has at most 64 KiB a place.
std::string mutate(std::span<const std::string> seeds, uint64_t number);

}  // namespace wisp
