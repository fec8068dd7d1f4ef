#include <algorithm>
#include <csetjmp>
#include <vector>
// clang-format off
#include <cstddef>  // both before jpeglib.h, which uses them
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "core/base/error.h"
#include "data/decoding/image_container.h"
#include "data/decoding/jpeg_codec.h"

namespace wisp {
namespace {

/// libjpeg's handler of errors: an error jumps to `escape`; the first warning of damage is kept.
struct ErrorHandler {
  jpeg_error_mgr base;  // the first member, so that libjpeg's pointer to it points here, too
  std::jmp_buf escape;
  char words[JMSG_LENGTH_MAX];
};

ErrorHandler& handler_of(j_common_ptr info) { return *reinterpret_cast<ErrorHandler*>(info->err); }

void leave(j_common_ptr info) {
  ErrorHandler& handler = handler_of(info);
  handler.base.format_message(info, handler.words);
  std::longjmp(handler.escape, 1);
}

int scan_of(j_common_ptr info) {
  return reinterpret_cast<j_decompress_ptr>(info)->input_scan_number;
}

/// Whether a warning tells of pixels that may be lost, not of a file that is odd. Bytes that
/// libjpeg passes over are odd before the first scan, which is 1, and lost pixels behind it.
bool is_damage(j_common_ptr info) {
  const int message = info->err->msg_code;
  if (message == JWRN_EXTRANEOUS_DATA) return scan_of(info) > 0;
  return message != JWRN_JFIF_MAJOR && message != JWRN_ADOBE_XFORM;
}

void keep_first_damage(j_common_ptr info, int level) {
  ErrorHandler& handler = handler_of(info);
  if (level >= 0 || !is_damage(info)) return;  // 0 and above are traces
  if (handler.base.num_warnings++ == 0) handler.base.format_message(info, handler.words);
}

/// Called by libjpeg now and then. Most time of a file with many scans goes into them.
void limit_scans(j_common_ptr info) {
  if (scan_of(info) <= kMostScans) return;
  ErrorHandler& handler = handler_of(info);
  std::snprintf(handler.words, sizeof handler.words, "the JPEG has more than %d scans", kMostScans);
  std::longjmp(handler.escape, 1);
}

/// A decompression of libjpeg. Its functions are called through guarded().
struct Decompression {
  jpeg_decompress_struct info{};
  ErrorHandler handler{};
  jpeg_progress_mgr progress{.progress_monitor = limit_scans};

  Decompression() {
    info.err = jpeg_std_error(&handler.base);
    handler.base.error_exit = leave;
    handler.base.emit_message = keep_first_damage;
  }
  ~Decompression() { jpeg_destroy_decompress(&info); }
  Decompression(const Decompression&) = delete;
  Decompression& operator=(const Decompression&) = delete;

  /// Calls f(), which calls libjpeg, and throws its error. f() has no objects with destructors:
  /// libjpeg's errors jump over them.
  template <class F>
  void guarded(const F& f) {
    if (setjmp(handler.escape) != 0) throw Error(concat("libjpeg: ", handler.words));
    f();
  }
};

/// The product of two bytes as shares of 255, rounded.
int share(int a, int b) { return (a * b + 127) / 255; }

/// CMYK as Adobe stores it, 255 for no ink.
void write_rgb_of_cmyk(const uint8_t* cmyk, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, cmyk += 4, out += 3) {
    const int light = cmyk[3];
    for (int c = 0; c < 3; ++c)
      out[c] = static_cast<uint8_t>(std::max(0, light - share(255 - cmyk[c], light)));
  }
}

/// Columns that are decoded on each side of a region. With them libjpeg interpolates chroma at the
/// region's sides as within the picture, and narrow regions are interpolated at all.
constexpr int64_t kMargin = 8;

}  // namespace

bool has_jpeg_codec() { return true; }

DecodedImage decode_jpeg(std::string_view bytes, const Region& region, int64_t shrink) {
  WISP_CHECK(shrink == 1 || shrink == 2 || shrink == 4 || shrink == 8, "decode_jpeg: shrink is ",
             shrink, ", expected 1, 2, 4 or 8");
  Decompression decompression;
  jpeg_decompress_struct& info = decompression.info;
  decompression.guarded([&] {
    jpeg_create_decompress(&info);
    info.progress = &decompression.progress;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned>(shrink);
    jpeg_calc_output_dimensions(&info);
  });
  const int64_t all_pixels = int64_t{info.image_height} * info.image_width;
  WISP_CHECK(all_pixels <= kMostPixels, "the picture has ", info.image_height, " x ",
             info.image_width, " pixels; up to ", kMostPixels, " are read");
  const int64_t height = info.output_height, width = info.output_width;
  WISP_CHECK(region.height >= 1 && region.width >= 1 && Region({0, 0, height, width}).holds(region),
             "region of ", region.height, " x ", region.width, " pixels at (", region.top, ", ",
             region.left, "), expected one within the picture's ", height, " x ", width);

  const int64_t begin = std::max<int64_t>(0, region.left - kMargin);
  auto left = static_cast<JDIMENSION>(begin);
  auto columns = static_cast<JDIMENSION>(std::min(width, region.right() + kMargin) - begin);
  decompression.guarded([&] {
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    jpeg_crop_scanline(&info, &left, &columns);
    jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(region.top));
  });

  DecodedImage result{Tensor({region.height, region.width, 3}, DType::u8), {}};
  std::vector<uint8_t> row(static_cast<size_t>(columns) * 4);
  const uint8_t* first = row.data() + (region.left - left) * info.output_components;
  for (int64_t y = 0; y < region.height; ++y) {
    decompression.guarded([&] {
      JSAMPROW into = row.data();
      jpeg_read_scanlines(&info, &into, 1);
    });
    uint8_t* out = result.pixels.data<uint8_t>() + y * region.width * 3;
    if (info.num_components == 4) {
      write_rgb_of_cmyk(first, region.width, out);
    } else {
      std::copy_n(first, region.width * 3, out);
    }
  }
  const ErrorHandler& handler = decompression.handler;
  if (handler.base.num_warnings > 0) result.complaint = handler.words;
  return result;
}

}  // namespace wisp
