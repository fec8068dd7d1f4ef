// The EXIF orientation of a picture in a WebP file. Any thread may call.
#pragma once

#include <string_view>

namespace wisp {

/// The EXIF orientation of a WebP file, 1 to 8. Returns 1 (not turned) if the file has no readable
/// orientation, and for other formats, which OpenCV turns itself. Sources: Google's "WebP Container
/// Specification", Exif 2.3, section 4.6.
int webp_orientation(std::string_view bytes);

}  // namespace wisp
