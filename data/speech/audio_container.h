// What is around a sound's samples in a file. libsndfile reads what is left of a WAV or SPHERE file
// that was cut off; so the container is looked at before. Any thread may call.
#pragma once

#include <cstdint>
#include <string_view>

namespace wisp {

/// `head` is what a file of `bytes` bytes begins with, all of it or enough for its headers. Throws
/// Error for what is no FLAC, WAV or SPHERE file, for a SPHERE file that shorten compressed, and if
/// a WAV's or SPHERE's header promises more samples than are there; whether a FLAC file is whole
/// shows in decoding. Sources: RFC 9639, section 6; Microsoft's "Multiple
/// Channel Audio Data and WAVE Files"; NIST's "SPHERE header".
void check_audio_container(std::string_view head, int64_t bytes);

}  // namespace wisp
