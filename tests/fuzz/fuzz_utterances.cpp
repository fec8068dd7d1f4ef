// Fuzz target for manifests of utterances, as lines of JSON and as CSV.
#include <cmath>
#include <filesystem>

#include "data/speech/manifest.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {

void fuzz(std::string_view input) {
  static const TempDir dir;
  static const std::string audio = dir.write("a.wav", "");
  const std::string path = dir.write("list", std::string(input));
  try {
    for (const Utterance& utterance : read_manifest(path))
      if (utterance.text.empty() || utterance.id.empty() || !(utterance.seconds >= 0) ||
          !std::isfinite(utterance.seconds) || !std::filesystem::exists(utterance.audio))
        throw Finding("utterances: one without text, id, length or audio");
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"audio": "a.wav", "text": "one, \"two\"", "duration": 1.5, "x": [1, {"y": null}]})"
          "\n\n"
          R"({"speaker": "s", "text": "drei \u00e4", "audio": "./a.wav", "id": "u"})",
          "text,audio,duration,other,speaker,id\r\n\"one, \"\"two\"\"\",a.wav,1.5,x,,\r\n"
          "\"drei\n\u00e4\",a.wav,,,s,u\n\n"};
}

/// JSON may have a value for every one or two bytes.
int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
