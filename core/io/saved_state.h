// The state of a worker that a checkpoint holds, by name, and its rule for a run that goes on with
// another number of workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"

namespace wisp {

/// Whether all ranks hold the same values (saved once), or each its own.
enum class Sharing { shared, per_rank };

/// What a rank starts from if there are M ranks now where N saved. Shared state is the same for any
/// number.
enum class OnResize {
  redistribute_sum,  // 1/M of the sum over the N ranks: no mass is lost (residuals, counts)
  owner,             // each element is one rank's: whoever owns it now takes it from who had it
  repeat,            // rank r takes what rank r mod N had
  zero
};

/// Elements of a tensor of which each rank saves those that it owns: NAME[BEGIN:END].
struct TensorPart {
  std::string whole;
  int64_t begin = 0, end = 0;
};

std::string part_name(const TensorPart& part);
/// Empty unless the name has that form.
std::optional<TensorPart> part_of_name(const std::string& name);

struct SavedState {
  std::string name;  // "momentum/stage1.block0.conv1.weight"; of an owner "….weight[128:256]"
  Tensor tensor;     // on the host
  Sharing sharing = Sharing::per_rank;
  OnResize on_resize = OnResize::repeat;
  bool within_epoch = false;  // means nothing to a run that goes on where an epoch begins
};

}  // namespace wisp
