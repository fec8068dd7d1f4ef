// Something that was said: where it is to be heard, and what it says.
#pragma once

#include <string>
#include <vector>

namespace wisp {

struct Utterance {
  std::string id;       // for people: "an426-fvap-b"
  std::string audio;    // path of the file
  std::string text;     // as it was written down
  std::string speaker;  // empty: not known
  double seconds = 0;   // 0: not known, the file says it
};

struct FoundUtterances {
  std::vector<Utterance> utterances;
  std::vector<std::string> notices;  // what lay beside them and was passed over, for people
};

}  // namespace wisp
