// A reader of whole.npy, which lies beside the recorded layers of a rank and describes the gradient
// that they are parts of. It has a row of f64 for each recorded step: the gradient's number of
// elements, and its norm over all layers, recorded or not, except those that counted as zero. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "data/npy.h"
#include "distributed/gradient_clip.h"

namespace wisp {

class RecordedWhole {
 public:
  static constexpr const char* kFile = "whole.npy";
  static constexpr int64_t kWords = 2;

  /// Opens the file beside `layer_file`, which has `steps` rows; empty if there is none. Throws
  /// Error with the path for a file that does not fit.
  static std::optional<RecordedWhole> beside(const std::string& layer_file, int64_t steps);

  /// The whole gradient of the worker's own mean loss, as the layers' rows are.
  WholeGradient at(int64_t step);

 private:
  explicit RecordedWhole(NpyReader file) : file_(std::move(file)) {}

  NpyReader file_;
};

}  // namespace wisp
