#include "core/error.h"
#include "data/speech/audio_codec.h"

namespace wisp {

Audio decode_with_library(std::string) {
  throw Error(
      "this build has no libsndfile, which reads sound files: install libsndfile1-dev and build "
      "again");
}

}  // namespace wisp
