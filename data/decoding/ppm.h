// PPM files: pixels of a picture without compression, for shards of small photos. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "data/decoding/image_view.h"

namespace wisp {

/// Encodes (H, W, 3) u8.
std::string encode_ppm(const Tensor& image);

struct PpmHeader {
  int64_t height = 0, width = 0;
  int64_t pixels = 0;  // offset of the first pixel
};

/// Whether the bytes begin as those of a PPM file do.
bool is_ppm(std::string_view bytes);
/// Reads the header as encode_ppm() writes it. Throws Error for another form, for an extent of 0 or
/// above 10^6, and for a file of another length. Source: Netpbm's ppm(5), P6 with 8 bits.
PpmHeader read_ppm_header(std::string_view bytes);
/// The pixels of a region, (H, W, 3) u8. Throws Error like read_ppm_header(), and for a region
/// outside of the picture.
Tensor decode_ppm(std::string_view bytes, const Region& region);

}  // namespace wisp
