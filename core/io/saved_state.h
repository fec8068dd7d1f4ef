// What a checkpoint holds of a worker, by name, and what becomes of it when a run goes on with
// another number of workers.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// Whether all ranks hold the same values (saved once), or each its own.
enum class Sharing { shared, per_rank };

/// What a rank starts from if there are M ranks now where N saved. Shared state is the same for any
/// number.
enum class OnResize {
  redistribute_sum,  // 1/M of the sum over the N ranks: no mass is lost (residuals, counts)
  sum,               // the sum over the N ranks: of what one rank holds for all
  repeat,            // rank r takes what rank r mod N had
  zero
};

struct SavedState {
  std::string name;  // "momentum/stage1.block0.conv1.weight"
  Tensor tensor;     // on the host
  Sharing sharing = Sharing::per_rank;
  OnResize on_resize = OnResize::repeat;
  bool within_epoch = false;  // means nothing to a run that goes on where an epoch begins
};

}  // namespace wisp
