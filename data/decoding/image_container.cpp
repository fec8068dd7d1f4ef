#include "data/decoding/image_container.h"

#include <array>
#include <bit>
#include <optional>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/checksum.h"
#include "data/decoding/ppm.h"

namespace wisp {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = crc_table(0xedb88320);
constexpr int kAsItLies = 1;  // an orientation

/// The format of which a file has the first bytes; none for another format.
std::optional<ImageFormat> image_format(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP")
    return ImageFormat::webp;
  if (is_ppm(bytes)) return ImageFormat::ppm;
  return std::nullopt;
}

/// A reader of numbers that throws Error beyond the end.
struct Numbers {
  std::string_view bytes;
  std::endian order;

  uint32_t at(size_t place, size_t count = 1) const {
    WISP_CHECK(place < bytes.size() && count <= bytes.size() - place, "the file is cut off: its ",
               bytes.size(), " bytes end within the header");
    return static_cast<uint32_t>(unsigned_in(bytes.substr(place, count), order));
  }
};

/// Whether a JPEG's marker begins a frame header: SOF0 to SOF15 without DHT, JPG and DAC.
bool begins_frame(uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/// Whether a segment with a length follows a JPEG's marker. 0 is no marker.
bool has_length(uint32_t marker) { return marker > 1 && (marker < 0xd0 || marker > 0xd7); }

ImageHeader jpeg_header(std::string_view bytes) {
  const Numbers numbers{bytes, std::endian::big};
  for (size_t at = 2;;) {
    while (numbers.at(at) != 0xff) ++at;  // libjpeg goes past bytes between segments, too
    while (numbers.at(at) == 0xff) ++at;  // fill bytes
    const uint32_t marker = numbers.at(at++);
    if (!has_length(marker)) continue;
    WISP_CHECK(marker != 0xd9 && marker != 0xda,
               "the file is damaged: the JPEG has no frame header before its scans");
    if (begins_frame(marker))
      return {ImageFormat::jpeg, numbers.at(at + 3, 2), numbers.at(at + 5, 2)};
    at += numbers.at(at, 2);
  }
}

ImageHeader webp_header(std::string_view bytes) {
  constexpr size_t kChunk = 12, kBody = 20;
  const Numbers numbers{bytes, std::endian::little};
  numbers.at(kBody - 1);
  const std::string_view chunk = bytes.substr(kChunk, 4);
  if (chunk == "VP8X") {
    WISP_CHECK((numbers.at(kBody) & 2) == 0,
               "the file is an animated WebP; JPEG, PNG and WebP of one picture are read");
    return {ImageFormat::webp, numbers.at(kBody + 7, 3) + 1, numbers.at(kBody + 4, 3) + 1};
  }
  if (chunk == "VP8L") {
    const uint32_t sizes = numbers.at(kBody + 1, 4);
    return {ImageFormat::webp, (sizes >> 14 & 0x3fff) + 1, (sizes & 0x3fff) + 1};
  }
  WISP_CHECK(chunk == "VP8 ", "the file is damaged: the WebP begins with no picture");
  return {ImageFormat::webp, numbers.at(kBody + 8, 2) & 0x3fff, numbers.at(kBody + 6, 2) & 0x3fff};
}

/// Throws Error unless a PNG's first chunk is IHDR, whose size all readers of it take then.
void check_begins_with_header(std::string_view png) {
  WISP_CHECK(png.substr(8, 8) == std::string_view("\0\0\0\x0dIHDR", 8),
             "the file is damaged: the PNG does not begin with its header, the chunk IHDR");
}

ImageHeader header_of(std::string_view bytes) {
  const std::optional<ImageFormat> format = image_format(bytes);
  if (format == ImageFormat::jpeg) return jpeg_header(bytes);
  if (format == ImageFormat::webp) return webp_header(bytes);
  if (format == ImageFormat::png) {
    const Numbers numbers{bytes, std::endian::big};
    numbers.at(23);
    check_begins_with_header(bytes);
    return {ImageFormat::png, numbers.at(20, 4), numbers.at(16, 4)};
  }
  if (format == ImageFormat::ppm) {
    const PpmHeader header = read_ppm_header(bytes);
    return {ImageFormat::ppm, header.height, header.width};
  }
  WISP_CHECK(!bytes.empty(), "the file is empty");
  throw Error(concat("the file is ", bytes.starts_with("GIF8") ? "a GIF" : "no picture",
                     "; JPEG, PNG and WebP are read"));
}

/// The orientation in the first directory of a TIFF. A directory is a count, and entries of a tag,
/// a type, a count and a value.
int tiff_orientation(std::string_view tiff) {
  constexpr uint64_t kOrientation = 0x112, kShort = 3;
  constexpr size_t kEntry = 12;
  const bool big_endian = tiff.starts_with("MM");
  if (!big_endian && !tiff.starts_with("II")) return kAsItLies;
  const auto number = [&](size_t at, size_t count) {  // 0 beyond the end
    if (at > tiff.size() || tiff.size() - at < count) return uint64_t{0};
    return unsigned_in(tiff.substr(at, count), big_endian ? std::endian::big : std::endian::little);
  };
  const size_t directory = number(4, 4);
  const uint64_t entries = number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * kEntry;
    if (number(at, 2) != kOrientation) continue;
    const uint64_t value = number(at + 8, 2);
    const bool known = number(at + 2, 2) == kShort && 1 <= value && value <= 8;
    return known ? static_cast<int>(value) : kAsItLies;
  }
  return kAsItLies;
}

/// Throws Error if `bytes` has fewer than `end` bytes.
void need(std::string_view bytes, size_t end, const char* part) {
  WISP_CHECK(end <= bytes.size(), "the file is cut off: it has ", bytes.size(), " bytes, and ",
             part, " ends at ", end, " or later");
}

/// Follows the segments by their lengths up to the end marker.
void check_jpeg(std::string_view bytes) {
  constexpr uint32_t kEnd = 0xd9, kScan = 0xda;
  size_t at = 2;
  int scans = 0;
  while (true) {
    const size_t marker = bytes.find('\xff', at);
    WISP_CHECK(marker < bytes.size() - 1, "the file is cut off: its ", bytes.size(),
               " bytes have no end marker of a JPEG");
    const uint32_t kind = static_cast<uint8_t>(bytes[marker + 1]);
    if (kind == kEnd) return;
    if (kind == kScan) ++scans;
    WISP_CHECK(scans <= kMostScans, "the JPEG has more than ", kMostScans, " scans");
    at = marker + 1;
    if (!has_length(kind) || kind == 0xff) continue;  // stuffing, a restart, or fill
    need(bytes, marker + 4, "a segment of a JPEG");
    at = marker + 2 + unsigned_in(bytes.substr(marker + 2, 2), std::endian::big);
    need(bytes, at, "a segment of a JPEG");
  }
}

uint32_t crc32(std::string_view bytes) {
  uint32_t value = 0xffffffffu;
  for (const char byte : bytes)
    value = value >> 8 ^ kCrcTable[(value ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~value;
}

/// Of the optional chunks only the orientation stays: libpng warns about old profiles.
bool decides_picture(std::string_view type) {
  return (type[0] >= 'A' && type[0] <= 'Z') || type == "eXIf";
}

std::string check_png(std::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // bytes of length, type and checksum
  std::string kept(bytes.substr(0, kSignature));
  need(bytes, kSignature + kAround, "a chunk of a PNG");
  check_begins_with_header(bytes);
  for (size_t at = kSignature;;) {
    need(bytes, at + kAround, "a chunk of a PNG");
    const size_t length = unsigned_in(bytes.substr(at, 4), std::endian::big);
    need(bytes, at + kAround + length, "a chunk of a PNG");
    const std::string_view chunk = bytes.substr(at, kAround + length);
    const std::string_view type = chunk.substr(4, 4);
    WISP_CHECK(type != "IHDR" || at == kSignature,
               "the file is damaged: the PNG has a second header at byte ", at);
    if (decides_picture(type)) {
      const uint64_t checksum = unsigned_in(chunk.substr(8 + length), std::endian::big);
      WISP_CHECK(crc32(chunk.substr(4, 4 + length)) == checksum,
                 "the file is damaged: the checksum of the PNG chunk at byte ", at, " is wrong");
      kept += chunk;
    }
    if (type == "IEND") return kept;
    at += chunk.size();
  }
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

/// Chunks follow each other from byte 12 on. A chunk is a name, a size, that number of bytes, and a
/// padding byte if the size is odd.
int webp_orientation(std::string_view bytes) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);  // of JPEGs, which some programs keep
  constexpr size_t kHeader = 8;
  if (image_format(bytes) != ImageFormat::webp) return kAsItLies;
  for (size_t at = 12; at + kHeader <= bytes.size();) {
    const size_t size = unsigned_in(bytes.substr(at + 4, 4), std::endian::little);
    const std::string_view name = bytes.substr(at, 4);
    at += kHeader;
    if (name == "EXIF") {
      std::string_view body = bytes.substr(at, size);
      if (body.starts_with(kPrefix)) body.remove_prefix(kPrefix.size());
      return tiff_orientation(body);
    }
    at += size + size % 2;
  }
  return kAsItLies;
}

std::string checked_container(std::string bytes) {
  const std::optional<ImageFormat> format = image_format(bytes);
  if (format == ImageFormat::png) return check_png(bytes);
  if (format == ImageFormat::jpeg) {
    check_jpeg(bytes);
  } else {
    WISP_CHECK(format == ImageFormat::webp, "the file is no picture; JPEG, PNG and WebP are read");
    const std::string_view size = std::string_view(bytes).substr(4, 4);
    need(bytes, 8 + unsigned_in(size, std::endian::little), "the WebP");
  }
  return bytes;
}

}  // namespace wisp
