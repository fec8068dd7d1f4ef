// Something that was said: where it is to be heard, and what it says.
#pragma once

#include <string>

namespace wisp {

struct Utterance {
  std::string id;       // for people: "an426-fvap-b"
  std::string audio;    // path of the file
  std::string text;     // as it was written down
  std::string speaker;  // empty: not known
  double seconds = 0;   // 0: not known, the file says it
};

}  // namespace wisp
