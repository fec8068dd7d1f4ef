#include <cstring>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "data/decoding/image_codec.h"
#include "data/decoding/image_container.h"

namespace wisp {
namespace {

/// Swaps the first and third channel: RGB to OpenCV's BGR, and back.
void swap_red_blue(uint8_t* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::swap(pixels[3 * i], pixels[3 * i + 2]);
}

/// The picture turned by an EXIF orientation.
cv::Mat turned(const cv::Mat& mat, int orientation) {
  constexpr int kLeftRight = 1, kBoth = -1, kUpDown = 0;
  constexpr int kFlips[] = {kLeftRight, kBoth, kUpDown};  // orientations 2 to 4, 6 to 8
  if (mat.empty() || orientation == 1) return mat;
  cv::Mat result = mat, flipped;
  if (orientation > 4) cv::transpose(mat, result);
  if (orientation == 5) return result;
  cv::flip(result, flipped, kFlips[(orientation - 2) % 4]);
  return flipped;
}

cv::Mat decode(std::string bytes, int64_t channels, Orientation orientation) {
  const cv::Mat file(1, static_cast<int>(bytes.size()), CV_8UC1, bytes.data());
  const int turn = orientation == Orientation::applied ? webp_orientation(bytes) : 1;
  int flags = channels == 1 ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR;
  if (turn > 1 || orientation == Orientation::ignored)  // newer versions may turn WebP, too
    flags |= cv::IMREAD_IGNORE_ORIENTATION;
  try {
    return turned(cv::imdecode(file, flags), turn);
  } catch (const cv::Exception& error) {
    throw Error(concat("OpenCV refuses it: ", error.err, "; it reads up to 2^30 pixels"));
  }
}

std::string encode(const Tensor& image, const char* ending, const std::vector<int>& options) {
  const Shape& shape = image.shape();
  cv::Mat mat(static_cast<int>(shape[0]), static_cast<int>(shape[1]),
              CV_8UC(static_cast<int>(shape[2])));
  std::memcpy(mat.data, image.raw(), static_cast<size_t>(image.bytes()));
  if (shape[2] == 3) swap_red_blue(mat.data, image.numel() / 3);
  std::vector<uint8_t> bytes;
  WISP_CHECK(cv::imencode(ending, mat, bytes, options), "OpenCV cannot encode a picture of ",
             shape);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Tensor decode_image(std::string bytes, int64_t channels, Orientation orientation) {
  const ImageHeader header = read_image_header(bytes);  // refuses too many pixels
  const cv::Mat mat = decode(std::move(bytes), channels, orientation);
  WISP_CHECK(!mat.empty() && mat.isContinuous(), "OpenCV cannot decode it");
  WISP_CHECK(int64_t{mat.rows} * mat.cols == header.height * header.width,
             "the decoded picture is ", mat.rows, " x ", mat.cols, ", its header promises ",
             header.height, " x ", header.width, " pixels");
  Tensor image({mat.rows, mat.cols, channels}, DType::u8);
  std::memcpy(image.raw(), mat.data, static_cast<size_t>(image.bytes()));
  if (channels == 3) swap_red_blue(image.data<uint8_t>(), image.numel() / 3);
  return image;
}

std::string encode_png(const Tensor& image) { return encode(image, ".png", {}); }

std::string encode_jpeg(const Tensor& image, int quality) {
  return encode(image, ".jpg", {cv::IMWRITE_JPEG_QUALITY, quality});
}

}  // namespace wisp
