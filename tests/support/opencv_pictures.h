// Picture files made by OpenCV, for tests in builds that have it.
#pragma once

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

namespace wisp {

/// The file of `mat` (BGR) in the format of `ending`, such as ".jpg".
inline std::string encoded(const cv::Mat& mat, const char* ending) {
  std::vector<uint8_t> bytes;
  cv::imencode(ending, mat, bytes);
  return {bytes.begin(), bytes.end()};
}

}  // namespace wisp
