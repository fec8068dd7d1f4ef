// What is around a picture's compressed data in a file. Decoders accept files that were cut off,
// and complain to stderr; so the container is looked at before. Any thread may call.
#pragma once

#include <string>

namespace wisp {

/// The bytes for a decoder: of a PNG without the chunks that do not decide how the picture looks or
/// is turned, else as they are. Throws Error for what is no JPEG, PNG or WebP, ends too early, or
/// has a PNG chunk with a wrong checksum. Sources: ITU-T T.81, annex B; PNG (third edition),
/// section 5; RFC 9649, section 2.3.
std::string checked_container(std::string bytes);

}  // namespace wisp
