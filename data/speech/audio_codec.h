// What libsndfile does for sound; a build without it has a function that throws. Any thread may
// call.
#pragma once

#include <string>

#include "data/speech/audio_file.h"

namespace wisp {

/// How many samples a channel may have: 4.6 hours at 16 kHz. A few bytes of FLAC can be many.
constexpr int64_t kMostAudioSamples = int64_t{1} << 28;

/// The sound in the bytes of a file that passed check_audio_container, channels averaged. Throws
/// Error for bytes that libsndfile cannot read, and for fewer samples than the header promises.
Audio decode_with_library(std::string bytes);

/// What the header of a file says. Throws Error for one that libsndfile cannot read, and if it does
/// not say how long the sound is.
AudioLength length_with_library(const std::string& path);

}  // namespace wisp
