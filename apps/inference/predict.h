// What a trained model says of photos.
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
  std::string error;                      // why the file could not be read; then there are none
};

/// Tells of each file, in their order, the `top` classes with their probabilities, the softmax of
/// the model's output. Throws Error for a model that does not tell a class for an image.
void predict(Inference& model, std::span<const std::string> files, int64_t top,
             const std::function<void(const Prediction&)>& tell);

}  // namespace wisp
