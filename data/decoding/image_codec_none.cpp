#include "data/decoding/image_codec.h"

namespace wisp {
namespace {

[[noreturn]] void refuse() {
  throw MissingLibrary(
      "this build has no OpenCV, which reads photos: install libopencv-imgcodecs-dev and build "
      "again");
}

}  // namespace

Tensor decode_image(std::string, int64_t, Orientation) { refuse(); }

std::string encode_png(const Tensor&) { refuse(); }

std::string encode_jpeg(const Tensor&, int) { refuse(); }

}  // namespace wisp
