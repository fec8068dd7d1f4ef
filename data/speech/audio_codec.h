// What libsndfile does for sound; a build without it has a function that throws. Any thread may
// call.
#pragma once

#include <string>

#include "data/speech/audio_file.h"

namespace wisp {

/// The sound in the bytes of a file that passed check_audio_container, channels averaged. Throws
/// Error for bytes that libsndfile cannot read, and for fewer samples than the header promises.
Audio decode_with_library(std::string bytes);

/// What the header of a file says; 0 samples if it does not say how many there are. Throws Error
/// for one that libsndfile cannot read.
AudioLength length_with_library(const std::string& path);

}  // namespace wisp
