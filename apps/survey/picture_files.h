// Image files of the samples that a model sees in training, to look at. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "apps/setup/prepared.h"

namespace wisp {

/// Writes the first `count` undamaged samples of epoch 0, augmented as the model gets them, to
/// `folder`, which is created. "frog_29.png" is training sample 29. Returns the number of files.
/// Throws Error for data that is not pictures, and as write_image().
int64_t write_pictures(const Prepared& prepared, int64_t count, const std::string& folder);

}  // namespace wisp
