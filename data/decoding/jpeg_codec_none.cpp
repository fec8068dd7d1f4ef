#include "core/base/error.h"
#include "data/decoding/jpeg_codec.h"

namespace wisp {

bool has_jpeg_codec() { return false; }

DecodedImage decode_jpeg(std::string_view, const Region&, int64_t) {
  throw Error(
      "this build has no libjpeg-turbo, which reads JPEGs: install libjpeg-dev and build again");
}

}  // namespace wisp
