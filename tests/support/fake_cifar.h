// The six files of CIFAR-10's binary version, in small. A pixel's value depends on its file, record
// and position.
#pragma once

#include <array>
#include <string>

#include "tests/support/temp_dir.h"

namespace wisp {

inline constexpr std::array kCifarFiles = {"data_batch_1.bin", "data_batch_2.bin",
                                           "data_batch_3.bin", "data_batch_4.bin",
                                           "data_batch_5.bin", "test_batch.bin"};

/// Label of a record in the file kCifarFiles[file].
inline int fake_label(int file, int64_t record) {
  return static_cast<int>((file * 3 + record) % 10);
}

/// Pixel (y, x) of channel c of a record.
inline uint8_t fake_pixel(int file, int64_t record, int64_t c, int64_t y, int64_t x) {
  return static_cast<uint8_t>(file * 101 + record * 37 + c * 71 + y * 13 + x * 7);
}

inline std::string fake_record(int file, int64_t record) {
  std::string bytes(1, static_cast<char>(fake_label(file, record)));
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < 32; ++y) {
      for (int64_t x = 0; x < 32; ++x)
        bytes += static_cast<char>(fake_pixel(file, record, c, y, x));
    }
  }
  return bytes;
}

/// Writes all six files, with `records` records each, into `folder` of `dir`.
inline void write_fake_cifar(const TempDir& dir, int64_t records, const std::string& folder = ".") {
  for (size_t file = 0; file < kCifarFiles.size(); ++file) {
    std::string bytes;
    for (int64_t r = 0; r < records; ++r) bytes += fake_record(static_cast<int>(file), r);
    dir.write(folder + "/" + kCifarFiles[file], bytes);
  }
}

}  // namespace wisp
