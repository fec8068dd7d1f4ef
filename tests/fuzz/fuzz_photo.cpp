// Fuzz target for photos, of which a part in the middle is decoded.
#include "data/decoding/photo.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/jpeg_files.h"

namespace wisp {
namespace {

constexpr int64_t kMostPixelsHere = 1 << 16;

}  // namespace

void fuzz(std::string_view input) {
  try {
    const Photo photo(input);
    const int64_t height = photo.height(), width = photo.width();
    if (height < 1 || width < 1 || height * width > kMostPixels)
      throw Finding("photo: a size out of range");
    if (height * width > kMostPixelsHere) return;
    const Region middle{height / 4, width / 4, (height + 1) / 2, (width + 1) / 2};
    if (photo.decode(middle).pixels.shape() != Shape({middle.height, middle.width, 3}))
      throw Finding("photo: pixels of another region");
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  const Tensor picture = noise_picture(20, 24);
  return {jpeg_of(picture),
          jpeg_of(picture, {.across = 1, .down = 1, .coding = JpegOptions::progressive}),
          jpeg_of(picture, {.stored = JCS_RGB, .across = 1, .down = 1, .restart = 2}),
          // PNG and WebP up to the size
          {"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x10\0\0\0\x10\x08\2\0\0\0", 29},
          {"RIFF\x40\0\0\0WEBPVP8L\x20\0\0\0\x2f\xf3\x81\x5d\0", 25}};
}

/// A progressive JPEG keeps two bytes for each of three numbers of a pixel; OpenCV decodes it
/// whole.
int64_t fuzz_memory(int64_t input_bytes) {
  return (1 << 20) + 32 * kMostPixelsHere + 10 * input_bytes;
}

}  // namespace wisp
