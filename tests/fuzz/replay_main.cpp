// Runs a fuzz target on its seeds and COUNT changed ones, the same each time, or on files that
// libFuzzer found. For compilers without libFuzzer.
//
//   fuzz_NAME COUNT | FILE...
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/fuzz/checked_run.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"

namespace {

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
  if (count < 2) {
    std::fprintf(stderr, "%s: expected a number of inputs, or files\n", arguments[0]);
    return 1;
  }
  if (std::isdigit(static_cast<unsigned char>(arguments[1][0]))) {
    replay_changes(std::stoull(arguments[1]));
  } else {
    replay_files(count - 1, arguments + 1);
  }
}
