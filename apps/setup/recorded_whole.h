// The gradient of which a recorded layer is a part: whole.npy beside the layers' files of a rank.
// It has a row of f64 for each recorded step: the gradient's elements, and its norm, both over all
// layers, recorded or not, without those that counted as zero. One thread.
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

  /// Of the layer in `layer_file`, which has `steps` rows; empty if nothing is recorded there.
  /// Throws Error with the path for a file that does not fit.
  static std::optional<RecordedWhole> beside(const std::string& layer_file, int64_t steps);

  /// Of the worker's own mean loss, as the rows are.
  WholeGradient at(int64_t step);

 private:
  explicit RecordedWhole(NpyReader file) : file_(std::move(file)) {}

  NpyReader file_;
};

}  // namespace wisp
