// Fuzz target for summary.json of a run directory.
#include "apps/run/summary.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {

void fuzz(std::string_view input) {
  static const TempDir dir;
  const std::string path = dir.write("summary.json", std::string(input));
  std::string read;
  try {
    read = Summary::from_json(path).json();
  } catch (const Error&) {
    return;
  }
  dir.write("summary.json", read);
  if (Summary::from_json(path).json() != read)
    throw Finding("summary: what was read and written reads otherwise");
}

std::vector<std::string> fuzz_seeds() {
  const Summary images{.scores = {{"test_accuracy", 0.75}, {"best_loss", 1e-300}},
                       .work_per_s = 123.5,
                       .steps = 400,
                       .bytes_raw = 4e9,
                       .numerics = "library 1.2, CPU"};
  const Summary speech{.scores = {{"test_wer", 0.25}},
                       .test_units = {{"anna", 3, 8}, {"b\u00e4r", 0, 4}},
                       .work = "seconds"};
  return {images.json(), speech.json(), Summary().json()};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
