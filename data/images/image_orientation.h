// The orientation of a picture in a WebP file: the way it has to be turned. Any thread may call.
#pragma once

#include <string_view>

namespace wisp {

/// The EXIF orientation, 1 to 8, that a WebP file says; 1, as it lies, if it says none that is
/// read, and of other files, which OpenCV turns itself. Sources: Google's "WebP Container
/// Specification", Exif 2.3, section 4.6.
int webp_orientation(std::string_view bytes);

}  // namespace wisp
