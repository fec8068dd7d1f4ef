// A validation split cut off a training set. Any thread may call.
#pragma once

#include "data/images/image_set.h"

namespace wisp {

struct HeldOut {
  ImageSet train;       // remaining samples
  ImageSet validation;  // held-out samples
};

/// Copies `set` into two sets. The validation set has `count` samples, at least 1 and fewer than
/// the whole set. They are drawn uniformly without replacement, by (size of the set, count) alone.
/// Runs of any seed, batch size and number of workers thus hold out the same samples. Both sets
/// keep the order of `set` and its names and classes.
HeldOut hold_out(const ImageSet& set, int64_t count);

}  // namespace wisp
