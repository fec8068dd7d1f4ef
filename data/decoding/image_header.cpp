#include "data/decoding/image_header.h"

#include "core/base/error.h"
#include "data/decoding/ppm.h"

namespace wisp {
namespace {

/// A reader of numbers that throws Error beyond the end.
struct Numbers {
  std::string_view bytes;

  uint32_t at(size_t place) const {
    WISP_CHECK(place < bytes.size(), "the file is cut off: its ", bytes.size(),
               " bytes end within the header");
    return static_cast<uint8_t>(bytes[place]);
  }
  uint32_t big(size_t place, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | at(place + i);
    return value;
  }
  uint32_t little(size_t place, size_t count) const {
    uint32_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | at(place + i);
    return value;
  }
};

/// Whether a JPEG's marker begins a frame header: SOF0 to SOF15 without DHT, JPG and DAC.
bool begins_frame(uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/// Whether a segment with a length follows a JPEG's marker. 0 is no marker.
bool has_length(uint32_t marker) { return marker > 1 && (marker < 0xd0 || marker > 0xd7); }

ImageHeader jpeg_header(const Numbers& numbers) {
  for (size_t at = 2;;) {
    while (numbers.at(at) != 0xff) ++at;  // libjpeg goes past bytes between segments, too
    while (numbers.at(at) == 0xff) ++at;  // fill bytes
    const uint32_t marker = numbers.at(at++);
    if (!has_length(marker)) continue;
    WISP_CHECK(marker != 0xd9 && marker != 0xda,
               "the file is damaged: the JPEG has no frame header before its scans");
    if (begins_frame(marker))
      return {ImageFormat::jpeg, numbers.big(at + 3, 2), numbers.big(at + 5, 2)};
    at += numbers.big(at, 2);
  }
}

ImageHeader webp_header(const Numbers& numbers) {
  constexpr size_t kChunk = 12, kBody = 20;
  numbers.at(kBody - 1);
  const std::string_view chunk = numbers.bytes.substr(kChunk, 4);
  if (chunk == "VP8X") {
    WISP_CHECK((numbers.at(kBody) & 2) == 0,
               "the file is an animated WebP; JPEG, PNG and WebP of one picture are read");
    return {ImageFormat::webp, numbers.little(kBody + 7, 3) + 1, numbers.little(kBody + 4, 3) + 1};
  }
  if (chunk == "VP8L") {
    const uint32_t sizes = numbers.little(kBody + 1, 4);
    return {ImageFormat::webp, (sizes >> 14 & 0x3fff) + 1, (sizes & 0x3fff) + 1};
  }
  WISP_CHECK(chunk == "VP8 ", "the file is damaged: the WebP begins with no picture");
  return {ImageFormat::webp, numbers.little(kBody + 8, 2) & 0x3fff,
          numbers.little(kBody + 6, 2) & 0x3fff};
}

ImageHeader header_of(std::string_view bytes) {
  const Numbers numbers{bytes};
  if (bytes.starts_with("\xff\xd8\xff")) return jpeg_header(numbers);
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"))
    return {ImageFormat::png, numbers.big(20, 4), numbers.big(16, 4)};
  if (bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP")
    return webp_header(numbers);
  if (is_ppm(bytes)) {
    const PpmHeader header = read_ppm_header(bytes);
    return {ImageFormat::ppm, header.height, header.width};
  }
  WISP_CHECK(!bytes.empty(), "the file is empty");
  throw Error(concat("the file is ", bytes.starts_with("GIF8") ? "a GIF" : "no picture",
                     "; JPEG, PNG and WebP are read"));
}

}  // namespace

ImageHeader read_image_header(std::string_view bytes) {
  const ImageHeader header = header_of(bytes);
  WISP_CHECK(header.height >= 1 && header.width >= 1, "the file is damaged: the picture has ",
             header.height, " x ", header.width, " pixels");
  WISP_CHECK(header.height <= kMostPixels / header.width, "the picture has ", header.height, " x ",
             header.width, " pixels; up to ", kMostPixels, " are read");
  return header;
}

}  // namespace wisp
