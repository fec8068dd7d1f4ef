// What a model sees in training, as files to look at.
#pragma once

#include <cstdint>
#include <string>

#include "apps/setup/prepared.h"

namespace wisp {

/// Writes the first `count` samples of epoch 0 that are not damaged, augmented as the model gets
/// them, to `folder`, which is made: "frog_29.png" is sample 29 of training. Returns how many there
/// were. Throws Error for data that is no pictures, and as write_image().
int64_t write_pictures(const Prepared& prepared, int64_t count, const std::string& folder);

}  // namespace wisp
