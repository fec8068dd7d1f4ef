// A check of the file structure around a sound's samples. It runs before decoding because
// libsndfile reads a truncated WAV or SPHERE file without an error. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wisp {

/// The bytes of an ID3v2 tag at the start of a file, or 0 without a tag. Source: "ID3 tag version
/// 2.4.0 - Main Structure", section 3.1.
int64_t tag_bytes(std::string_view head);

/// Checks the start of a sound file. `head` is all of the file after an ID3v2 tag, or enough for
/// its headers; `bytes` is the file's size without the tag. Throws Error for a file that is no
/// FLAC, WAV (also RIFX and RF64) or SPHERE, and for a SPHERE file compressed by shorten. Throws
/// Error if a WAV or SPHERE header promises more samples than the file has. A truncated FLAC file
/// is found only in decoding. A header written to a pipe has a placeholder for the unknown size;
/// the samples then reach to the end of the file. Returns the position of a placeholder that is 0,
/// which libsndfile takes for no samples; otherwise 0. Sources: RFC 9639, section 6; Microsoft's
/// "Multiple Channel Audio Data and WAVE Files"; EBU Tech 3306; NIST's "SPHERE header".
size_t check_audio_container(std::string_view head, int64_t bytes);

}  // namespace wisp
