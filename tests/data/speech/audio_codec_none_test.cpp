#include <gtest/gtest.h>

#include "data/speech/audio_file.h"
#include "tests/support/error_of.h"
#include "tests/support/sound_files.h"

namespace wisp {
namespace {

TEST(AudioCodec, SaysWhatIsMissingInThisBuild) {
  EXPECT_EQ(error_of([] { decode_audio(wav_file(pcm16({1}))); }),
            "this build has no libsndfile, which reads sound files: install libsndfile1-dev and "
            "build again");
}

}  // namespace
}  // namespace wisp
