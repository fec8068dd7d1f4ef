// A check of the file structure around a picture's compressed data. It runs before decoding because
// decoders accept truncated files and only complain to stderr. Any thread may call.
#pragma once

#include <string>

namespace wisp {

/// Checks a file and returns its bytes for a decoder. Removes the chunks of a PNG that affect
/// neither its look nor its orientation. Throws Error for a file that is no JPEG, PNG or WebP, that
/// ends too early, or that has a wrong checksum in a PNG chunk that stays. Sources: ITU-T T.81,
/// annex B; PNG (third edition), section 5; RFC 9649, section 2.3.
std::string checked_container(std::string bytes);

}  // namespace wisp
