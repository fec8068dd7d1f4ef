// Runs a fuzz target on its seeds and a fixed number of changed ones, or on the files that it is
// given: what libFuzzer found. For compilers without libFuzzer.
//
//   fuzz_NAME [COUNT | FILE...]
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/fuzz/checked_run.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"

namespace {

constexpr uint64_t kCount = 3000;

void replay_files(int count, char** files) {
  for (int i = 0; i < count; ++i) {
    std::ostringstream text;
    text << std::ifstream(files[i], std::ios::binary).rdbuf();
    wisp::checked_run(text.str());
  }
}

void replay_changes(uint64_t count) {
  const std::vector<std::string> seeds = wisp::fuzz_seeds();
  for (const std::string& seed : seeds) wisp::checked_run(seed);
  for (uint64_t number = 0; number < count; ++number)
    wisp::checked_run(wisp::mutate(seeds, number));
  std::printf("%zu seeds and %llu changed ones: no finding\n", seeds.size(),
              static_cast<unsigned long long>(count));
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && !std::isdigit(static_cast<unsigned char>(arguments[1][0]))) {
    replay_files(count - 1, arguments + 1);
  } else {
    replay_changes(count > 1 ? std::stoull(arguments[1]) : kCount);
  }
}
