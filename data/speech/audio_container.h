// What is around a sound's samples in a file. libsndfile reads what is left of a WAV or SPHERE file
// that was cut off; so the container is looked at before. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wisp {

/// The bytes of an ID3v2 tag that a file begins with, 0 if it has none. Source: "ID3 tag version
/// 2.4.0 - Main Structure", section 3.1.
int64_t tag_bytes(std::string_view head);

/// `head` is what a file of `bytes` bytes begins with behind such a tag, all of it or enough for
/// its headers. Throws Error for what is no FLAC, WAV (RIFX and RF64, too) or SPHERE file, for a
/// SPHERE file that shorten compressed, and if a WAV's or SPHERE's header promises more samples
/// than are there; whether a FLAC file is whole shows in decoding. A size of what was not known
/// when it was written, as to a pipe, means the samples up to the file's end. Returns the place of
/// the size that is 0 for that reason, which libsndfile takes for no samples; 0 if there is none.
/// Sources: RFC 9639, section 6; Microsoft's "Multiple Channel Audio Data and WAVE Files"; EBU Tech
/// 3306; NIST's "SPHERE header".
size_t check_audio_container(std::string_view head, int64_t bytes);

}  // namespace wisp
