// Times a loader thread's work on photos. It decodes all JPEGs below a directory, whole by a plain
// loop of libjpeg, and as the pipeline does. Each figure is pictures per second of CPU time, the
// best of the repetitions, and its ratio to the plain loop's. Usage: image_bench DIR [repetitions]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses it
#include <jpeglib.h>
// clang-format on

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/photos/photo_pipeline.h"

namespace wisp {
namespace {

std::vector<std::string> jpegs_below(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string ending = entry.path().extension();
    if (ending == ".JPEG" || ending == ".jpg" || ending == ".jpeg") files.push_back(entry.path());
  }
  WISP_CHECK(!files.empty(), directory, " holds no .JPEG, .jpg or .jpeg file");
  std::sort(files.begin(), files.end());
  return files;
}

/// Decodes a file as libjpeg's manual does, into memory that is there already.
void decode_plainly(const std::string& bytes, std::vector<uint8_t>& pixels) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const size_t row = size_t{3} * info.output_width;
  if (pixels.size() < row * info.output_height) pixels.resize(row * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW into = pixels.data() + row * info.output_scanline;
    jpeg_read_scanlines(&info, &into, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

void bench(const std::string& directory, int repetitions) {
  std::vector<std::string> files;
  double pixels = 0;
  for (const std::string& path : jpegs_below(directory)) {
    files.push_back(read_whole_file(path, int64_t{1} << 30));
    const Photo photo(files.back());
    pixels += static_cast<double>(photo.height()) * static_cast<double>(photo.width());
  }
  fmt::print("{} pictures of {:.0f} pixels\n", files.size(),
             pixels / static_cast<double>(files.size()));

  const Normalization normalization{{123.675, 116.28, 103.53}, {58.395, 57.12, 57.375}};
  const PhotoPipeline plain({}, normalization, DType::f32);
  const PhotoPipeline cubic({.filter = Filter::bicubic}, normalization, DType::f32);
  const PhotoPipeline all({.jitter = {0.4, 0.4, 0.4}, .lighting = 0.1}, normalization, DType::f32);
  std::vector<float> out(224 * 224 * 3);
  auto* const into = reinterpret_cast<std::byte*>(out.data());
  std::vector<uint8_t> whole;
  int64_t epoch = 0;
  const auto key = [&](size_t i) { return SampleKey{1, epoch, static_cast<int64_t>(i)}; };
  const auto crop = [&](const Photo& photo, size_t i) {
    return random_view(photo.height(), photo.width(), 224, {}, key(i));
  };

  struct Line {
    const char* what;
    std::function<void(size_t)> work;
    double least = 1e30;  // CPU seconds
  };
  std::vector<DecodedImage> parts(files.size());
  std::vector<Line> lines{
      {"libjpeg, whole", [&](size_t i) { decode_plainly(files[i], whole); }},
      {"decoded whole",
       [&](size_t i) {
         const Photo photo(files[i]);
         photo.decode({0, 0, photo.height(), photo.width()});
       }},
      {"random crop, decoded",
       [&](size_t i) {
         const Photo photo(files[i]);
         parts[i] = photo.decode(footprint(crop(photo, i), Filter::bilinear));
       }},
      {"random crop, scaled",
       [&](size_t i) {
         const View view = crop(Photo(files[i]), i);
         resample_image(parts[i].pixels, footprint(view, Filter::bilinear), view, Filter::bilinear);
       }},
      {"training: crop, flip", [&](size_t i) { plain.train(Photo(files[i]), key(i), into); }},
      {"training, bicubic", [&](size_t i) { cubic.train(Photo(files[i]), key(i), into); }},
      {"training, jitter, lighting", [&](size_t i) { all.train(Photo(files[i]), key(i), into); }},
      {"evaluation", [&](size_t i) { plain.evaluate(Photo(files[i]), into); }}};
  for (; epoch < repetitions; ++epoch) {
    for (Line& line : lines) {
      const std::clock_t begin = std::clock();
      for (size_t i = 0; i < files.size(); ++i) line.work(i);
      line.least = std::min(line.least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
  }
  for (const Line& line : lines)
    fmt::print("{:28} {:7.0f} pictures/s  {:5.2f}\n", line.what,
               static_cast<double>(files.size()) / line.least, lines[0].least / line.least);
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: image_bench DIR [repetitions]\n");
    return 2;
  }
  try {
    wisp::bench(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
  } catch (const std::exception& error) {
    fmt::print(stderr, "image_bench: {}\n", error.what());
    return 1;
  }
}
