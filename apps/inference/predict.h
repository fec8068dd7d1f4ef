// Classification of image files by a trained model. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/inference/inference.h"

namespace wisp {

struct ClassProbability {
  int64_t index = 0;
  std::string name;  // empty if the classes have none
  double probability = 0.0;
};

struct Prediction {
  std::string file;
  std::vector<ClassProbability> classes;  // the most probable first
  std::string error;                      // why the file could not be read: classes is empty then
};

/// Passes the `top` classes of each file to `tell`, in the files' order, with their softmax
/// probabilities. Throws Error for a model that does not classify images.
void predict(Inference& model, std::span<const std::string> files, int64_t top,
             const std::function<void(const Prediction&)>& tell);

}  // namespace wisp
