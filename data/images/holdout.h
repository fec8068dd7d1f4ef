// A validation split cut off a training set. Any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_set.h"

namespace wisp {

/// The meaning of data.validation where it is a number of samples.
inline constexpr const char* kHoldOutMeaning =
    "number of training samples held out for validation; they decide the best checkpoint and the "
    "plateau, and the test set is evaluated only at the end; 0: none, the last checkpoint is the "
    "best";

/// Numbers of samples, in order.
struct HeldOutNumbers {
  std::vector<int64_t> train;       // remaining samples
  std::vector<int64_t> validation;  // held-out samples
};

/// Holds out `count` of the samples 0 to size - 1: at least 1 and fewer than all. They are drawn
/// uniformly without replacement, by (size, count) alone. Runs of any seed, batch size and number
/// of workers thus hold out the same samples. `name` is for messages.
HeldOutNumbers hold_out(int64_t size, int64_t count, const std::string& name);

struct HeldOut {
  ImageSet train;       // remaining samples
  ImageSet validation;  // held-out samples
};

/// Copies `set` into two sets, by the numbers above. Both keep the order of `set` and its classes.
HeldOut hold_out(const ImageSet& set, int64_t count);

}  // namespace wisp
