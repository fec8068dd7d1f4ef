#include "data/decoding/ppm.h"

#include <charconv>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr std::string_view kMagic = "P6\n";
constexpr std::string_view kDepth = "255\n";
constexpr int64_t kChannels = 3;
constexpr int64_t kMostExtent = 1'000'000;

/// Takes a number and the character behind it from the front of `text`.
int64_t take_number(std::string_view& text, char behind) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  WISP_CHECK(
      error == std::errc() && last != end && *last == behind && number > 0 && number <= kMostExtent,
      "the header of the PPM is damaged, expected P6, width, height and 255");
  text.remove_prefix(static_cast<size_t>(last - text.data()) + 1);
  return number;
}

}  // namespace

std::string encode_ppm(const Tensor& image) {
  const Shape& shape = image.shape();
  WISP_CHECK(image.dtype() == DType::u8 && shape.rank() == 3 && shape[2] == kChannels,
             "encode_ppm: the picture is ", shape, " ", name_of(image.dtype()),
             ", expected (H, W, 3) u8");
  std::string bytes = concat(kMagic, shape[1], " ", shape[0], "\n", kDepth);
  return bytes.append(reinterpret_cast<const char*>(image.raw()),
                      static_cast<size_t>(image.bytes()));
}

bool is_ppm(std::string_view bytes) { return bytes.starts_with(kMagic); }

PpmHeader read_ppm_header(std::string_view bytes) {
  WISP_CHECK(is_ppm(bytes), "no PPM file");
  std::string_view rest = bytes.substr(kMagic.size());
  PpmHeader header;
  header.width = take_number(rest, ' ');
  header.height = take_number(rest, '\n');
  WISP_CHECK(rest.starts_with(kDepth),
             "the PPM has another depth than 8 bits, expected 255 behind width and height");
  rest.remove_prefix(kDepth.size());
  header.pixels = std::ssize(bytes) - std::ssize(rest);
  const int64_t wanted = header.height * header.width * kChannels;
  WISP_CHECK(std::ssize(rest) == wanted, "the PPM has ", rest.size(), " bytes of pixels, expected ",
             wanted, " for ", header.height, " x ", header.width);
  return header;
}

Tensor decode_ppm(std::string_view bytes, const Region& region) {
  const PpmHeader header = read_ppm_header(bytes);
  WISP_CHECK((Region{0, 0, header.height, header.width}.holds(region)),
             "decode_ppm: the region is outside of the picture");
  return cut_region(bytes.data() + header.pixels, header.width, region);
}

}  // namespace wisp
