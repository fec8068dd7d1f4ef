// A drawn stand-in for CIFAR-10, or for larger images: ten kinds of shape and texture, in colour.
// Position, size, rotation, both colours and the noise are random, and their distribution is the
// same for all classes. A pixel's mean therefore says nothing about the class: a linear model stays
// near chance, a convolutional one learns. Any thread may call.
#pragma once

#include "data/examples.h"
#include "data/images/image_set.h"

namespace wisp {

struct SyntheticOptions {
  int64_t train_count = 50000;
  int64_t test_count = 10000;
  int64_t side = 32;  // rows and columns; larger images show the same scenes in more pixels
  int64_t seed = 1;
};

/// Draws a split. Image i has class i mod 10 and depends on (seed, split, i) alone.
ImageSet draw_synthetic(const SyntheticOptions& options, Split split);

}  // namespace wisp
