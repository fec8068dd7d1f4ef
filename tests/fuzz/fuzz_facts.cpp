// Fuzz target for facts.json of a run directory.
#include "apps/run/run_facts.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {

void fuzz(std::string_view input) {
  static const TempDir dir;
  dir.write("facts.json", std::string(input));
  try {
    const RunFacts read = RunFacts::read(dir.path());
    dir.write("facts.json", read.json());
    if (RunFacts::read(dir.path()).json() != read.json())
      throw Finding("facts: what was read and written reads otherwise");
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  const RunFacts images{
      .facts = {.inputs = {{.name = "images",
                            .sample = {32, 32, 3},
                            .normalization = {{125.3, 123, 113.9}, {63, 62.1, 66.7}},
                            .photo = {.side = 256, .filter = "bicubic"}}},
                .classes = 2,
                .names = {"bee", "\u00e4nt"}},
      .has_validation = true,
      .data = {{"train", 128, "00000000000000ff"}, {"test", 7, "0123456789abcdef"}}};
  const RunFacts sounds{.facts = {.inputs = {{.name = "sound",
                                              .sample = {0, 161},
                                              .padded = true,
                                              .sound = {.rate = 16000, .mels = 80}},
                                             {.name = "words", .sample = {0}, .ids = 9}},
                                  .work = "seconds"}};
  return {images.json(), sounds.json(), RunFacts{}.json()};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
