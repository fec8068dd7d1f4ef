// A piece of a worker's state in a checkpoint, by name, with the rule for a run that resumes with
// another number of workers. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/io/value_check.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Whether all ranks hold the same values, which are saved once, or each rank its own.
enum class Sharing { shared, per_rank };

/// The initial state of a rank when N ranks saved and M ranks resume. Shared state is the same for
/// any number of ranks.
enum class OnResize {
  redistribute_sum,  // 1/M of the sum over the N ranks: no mass is lost (residuals, counts)
  owner,             // each element belongs to one rank; its new owner gets it from its old owner
  repeat,            // rank r gets the state of rank r mod N
  zero
};

/// Elements of a tensor that is saved in parts, each rank its own elements: NAME[BEGIN:END].
struct TensorPart {
  std::string whole;
  int64_t begin = 0, end = 0;
};

std::string part_name(const TensorPart& part);
/// Empty unless `name` has the form NAME[BEGIN:END].
std::optional<TensorPart> part_of_name(const std::string& name);

/// A named tensor of a worker's state, and how it is saved and resized.
struct SavedState {
  std::string name;  // "momentum/stage1.block0.conv1.weight"; a part: "….weight[128:256]"
  Tensor tensor;     // in use: on the worker's device, or the host
  Sharing sharing = Sharing::per_rank;
  OnResize on_resize = OnResize::repeat;
  bool within_epoch = false;  // only used by a run that resumes within an epoch
  ValueCheck check = {};      // of a file's values; empty: any values
};

}  // namespace wisp
