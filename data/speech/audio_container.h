// What is around a sound's samples in a file. libsndfile reads what is left of a WAV or SPHERE file
// that was cut off; so the container is looked at before. Any thread may call.
#pragma once

#include <string_view>

namespace wisp {

/// Throws Error for bytes that are no FLAC, WAV or SPHERE file, for a SPHERE file that shorten
/// compressed, and if a WAV's or SPHERE's header promises more samples than are there; whether a
/// FLAC file is whole shows in decoding. Sources: RFC 9639, section 6; Microsoft's "Multiple
/// Channel Audio Data and WAVE Files"; NIST's "SPHERE header".
void check_audio_container(std::string_view bytes);

}  // namespace wisp
