// An utterance: its sound file and its text. A value.
#pragma once

#include <string>
#include <vector>

namespace wisp {

struct Utterance {
  std::string id;       // for people: "an426-fvap-b"
  std::string audio;    // path of the file
  std::string text;     // words of the transcript
  std::string speaker;  // empty if unknown
  double seconds = 0;   // 0: unknown, the file's header has it
};

struct FoundUtterances {
  std::vector<Utterance> utterances;
  std::vector<std::string> notices;  // for people: skipped files
};

}  // namespace wisp
