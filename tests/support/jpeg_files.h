// JPEG files for tests, written by libjpeg. Any thread.
#pragma once

#include <cstdlib>
#include <string>
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses it
#include <jpeglib.h>
// clang-format on

#include "core/tensor/tensor.h"

namespace wisp {

struct JpegOptions {
  J_COLOR_SPACE stored = JCS_YCbCr;  // JCS_GRAYSCALE, JCS_RGB, JCS_CMYK or JCS_YCCK
  int across = 2, down = 2;          // chroma samples are so many times fewer
  enum Coding { baseline, progressive, separate_scans, arithmetic } coding = baseline;
  int restart = 0;  // blocks from one restart marker to the next; 0: none
};

/// A JPEG of (H, W, C) u8: C = 1 for grey, 4 for CMYK, otherwise 3.
inline std::string jpeg_of(const Tensor& image, const JpegOptions& options = {}) {
  const int64_t channels = image.shape()[2], width = image.shape()[1];
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* file = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &file, &bytes);
  info.image_height = static_cast<JDIMENSION>(image.shape()[0]);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = static_cast<int>(channels);
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, options.stored);
  jpeg_set_quality(&info, 92, TRUE);
  info.comp_info[0].h_samp_factor = options.across;
  info.comp_info[0].v_samp_factor = options.down;
  if (info.num_components == 4) {
    info.comp_info[3].h_samp_factor = options.across;
    info.comp_info[3].v_samp_factor = options.down;
  }
  info.restart_interval = static_cast<unsigned>(options.restart);
  if (options.coding == JpegOptions::progressive) jpeg_simple_progression(&info);
  jpeg_scan_info scans[4] = {};  // one for each component
  for (int i = 0; i < 4; ++i)
    scans[i] = {.comps_in_scan = 1, .component_index = {i}, .Ss = 0, .Se = 63, .Ah = 0, .Al = 0};
  if (options.coding == JpegOptions::separate_scans) {
    info.scan_info = scans;
    info.num_scans = info.num_components;
  }
  info.arith_code = options.coding == JpegOptions::arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&info, TRUE);
  for (int64_t y = 0; y < image.shape()[0]; ++y) {
    JSAMPROW row = image.data<uint8_t>() + y * width * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<char*>(file), bytes);
  std::free(file);
  return result;
}

}  // namespace wisp
