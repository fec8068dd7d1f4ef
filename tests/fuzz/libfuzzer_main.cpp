// Our part of a libFuzzer program. Its first argument is the corpus, to which it adds the seeds.
#include <filesystem>
#include <fstream>

#include "tests/fuzz/checked_run.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::filesystem::path corpus = *count > 1 ? (*arguments)[1] : "";
  if (!std::filesystem::is_directory(corpus)) return 0;  // a single input to repeat
  int number = 0;
  for (const std::string& seed : wisp::fuzz_seeds())
    std::ofstream(corpus / wisp::concat("seed_", number++), std::ios::binary) << seed;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wisp::checked_run({reinterpret_cast<const char*>(data), size});
  return 0;
}
