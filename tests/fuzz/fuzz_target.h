// What a fuzz_NAME.cpp defines: how one input is read. libfuzzer_main.cpp or replay_main.cpp makes
// a program of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace wisp {

/// Reads the input as the format does. Returns for a good one and for one that the library refuses
/// with an Error; anything else is a finding.
void fuzz(std::string_view input);

/// Well-formed inputs, made by the library's own writers where it has them.
std::vector<std::string> fuzz_seeds();

/// The most bytes of memory that an input of so many bytes may take at once.
int64_t fuzz_memory(int64_t input_bytes);

/// What fuzz() throws for an input that was read wrongly.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace wisp
