// Writes the pixels of photos as evaluation and random crops see them, bilinear and bicubic, to
// stdout, for scripts/check_images.py. A line says what follows. Usage: image_pixels FILE...
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <string>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/decoding/photo.h"
#include "data/decoding/resample_image.h"

namespace wisp {
namespace {

void write(const Photo& photo, const char* what, const View& view, Filter filter) {
  const Region at = footprint(view, filter);
  const DecodedImage part = photo.decode(at);
  WISP_CHECK(part.complaint.empty(), part.complaint);
  const Tensor image = resample_image(part.pixels, at, view, filter);
  const auto& [source, height, width, window] = view;
  fmt::print("{} {} {} {} {} {} {} {} {} {} {} {}\n", what,
             filter == Filter::bilinear ? "bilinear" : "bicubic", source.top, source.left,
             source.height, source.width, height, width, window.top, window.left, window.height,
             window.width);
  const auto bytes = static_cast<size_t>(image.bytes());
  WISP_CHECK(std::fwrite(image.raw(), 1, bytes, stdout) == bytes, "stdout cannot be written");
}

void write_file(const std::string& path) {
  const std::string bytes = read_whole_file(path, int64_t{1} << 30);
  const Photo photo(bytes);
  for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
    write(photo, "evaluation", evaluation_view(photo.height(), photo.width(), 256, 224), filter);
    for (int64_t sample = 0; sample < 4; ++sample)
      write(photo, "random",
            random_view(photo.height(), photo.width(), 224, {}, {.seed = 1, .sample = sample}),
            filter);
  }
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      wisp::write_file(argv[i]);
    } catch (const std::exception& error) {
      fmt::print(stderr, "image_pixels: {}: {}\n", argv[i], error.what());
      return 1;
    }
  }
}
