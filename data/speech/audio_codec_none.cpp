#include "core/base/error.h"
#include "data/speech/audio_codec.h"

namespace wisp {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      "this build has no libsndfile, which reads sound files: install libsndfile1-dev and build "
      "again");
}

}  // namespace

Audio decode_with_library(std::string) { refuse(); }

AudioLength length_with_library(const RandomAccessFile&) { refuse(); }

}  // namespace wisp
