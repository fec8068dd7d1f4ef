// Cuts a validation split off a training set.
#pragma once

#include "data/images/image_set.h"

namespace wisp {

struct HeldOut {
  ImageSet train;       // what is left
  ImageSet validation;  // what is held out
};

/// Copies `set` into two, of which the second has `count` samples, 1 or more and fewer than the
/// set's. They are drawn without replacement, each choice as likely as any other, by (size of the
/// set, count) alone: runs of any seed, batch and number of workers hold out the same. Both keep
/// the order of `set`, and all that it says of its samples.
HeldOut hold_out(const ImageSet& set, int64_t count);

}  // namespace wisp
