// A photo in the bytes of a JPEG, PNG, WebP or PPM file: its size from the header, and pixels of a
// region as RGB. One thread at a time; different photos on any threads.
#pragma once

#include <string_view>

#include "data/decoding/image_container.h"
#include "data/decoding/image_view.h"
#include "data/decoding/jpeg_codec.h"

namespace wisp {

class Photo {
 public:
  /// `bytes`, of a file, must outlive the photo. Throws Error like read_image_header().
  explicit Photo(std::string_view bytes) : bytes_(bytes), header_(read_image_header(bytes)) {}

  int64_t height() const { return header_.height; }
  int64_t width() const { return header_.width; }

  /// Decodes a region, (H, W, 3) u8. libjpeg-turbo decodes no more of a JPEG than the region needs.
  /// OpenCV decodes PNG and WebP whole, and JPEGs in a build without libjpeg-turbo. Alpha is
  /// dropped and the EXIF orientation ignored, as torchvision does. 16 bits lose the lower 8;
  /// Pillow limits grey ones to 255. Throws Error for damage that its decoder refuses.
  ///
  /// `shrink` is as in decode_jpeg(); other pictures have no smaller ones. Throws Error if it is
  /// not 1 and can_shrink() is false.
  DecodedImage decode(const Region& region, int64_t shrink = 1) const;
  bool can_shrink() const { return header_.format == ImageFormat::jpeg && has_jpeg_codec(); }

 private:
  std::string_view bytes_;
  ImageHeader header_;
};

}  // namespace wisp
