#include "data/images/image_file.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/io/output_file.h"
#include "data/images/image_codec.h"
#include "data/images/image_container.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t{1} << 30;

std::string read_bytes(const std::string& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  WISP_CHECK(type != fs::file_type::not_found, "there is no such file");
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(type == fs::file_type::regular, "it is no file");
  const auto size = static_cast<int64_t>(fs::file_size(path, failure));
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(size <= kMostBytes, "it has ", size, " bytes, expected ", kMostBytes, " at most");
  std::string bytes(static_cast<size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), size);
  WISP_CHECK(in, "it cannot be read");
  return bytes;
}

}  // namespace

Tensor read_image(const std::string& path, int64_t channels) {
  WISP_CHECK(channels == 1 || channels == 3, "read_image: ", channels,
             " channels, expected 1 (grey) or 3 (RGB)");
  try {
    return decode_image(checked_container(read_bytes(path)), channels);
  } catch (const Error& error) {
    throw Error(concat(path, ": ", error.what()));
  }
}

void write_image(const std::string& path, const Tensor& image) {
  WISP_CHECK(path.ends_with(".png"), "write_image: ", path, ", expected a name that ends in .png");
  const Shape& shape = image.shape();
  WISP_CHECK(image.dtype() == DType::u8 && shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3) &&
                 shape.numel() > 0,
             "write_image: ", path, ": the picture is ", shape, " ", name_of(image.dtype()),
             ", expected (H, W, 1) or (H, W, 3) u8");
  const std::string bytes = encode_png(image);
  OutputFile(path, OutputFile::Mode::replace).write(bytes);
}

}  // namespace wisp
