// Decoding of sound by libsndfile; a build without it throws Error. Any thread.
#pragma once

#include <string>

#include "core/io/input_file.h"
#include "data/speech/audio_file.h"

namespace wisp {

/// Decodes the bytes of a file that passed check_audio_container, and averages channels. Throws
/// Error for bytes that libsndfile cannot read, and for fewer samples than the header promises.
Audio decode_with_library(std::string bytes);

/// The length in a file's header, 0 samples if it has none. Throws Error if libsndfile refuses it.
AudioLength length_with_library(const RandomAccessFile& file);

}  // namespace wisp
