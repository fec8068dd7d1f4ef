// The functions that a fuzz_NAME.cpp defines, which read one input of a format. libfuzzer_main.cpp
// or replay_main.cpp makes a program of it. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace wisp {

/// Reads the input in the target's format. Returns if the input is valid, or if the library refuses
/// it with an Error. Any other outcome is a finding.
void fuzz(std::string_view input);

/// Valid inputs, made by the library's own writers if they exist.
std::vector<std::string> fuzz_seeds();

/// Limit for the memory, in bytes, that an input of the given size may take at once.
int64_t fuzz_memory(int64_t input_bytes);

/// The exception of fuzz() for an input that was read wrongly.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace wisp
