// The rig that tests drive a method's workers with, on the reference backend.
#pragma once

#include <utility>

#include "distributed/bench/rehearsal.h"

namespace wisp {

class MethodRig : public Rehearsal {
 public:
  /// All arenas are there, those too that the method does not ask for.
  MethodRig(int workers, std::vector<Field> fields, const Make& make)
      : Rehearsal(workers, std::move(fields), make) {
    for (int rank = 0; rank < workers; ++rank) {
      for (Tensor* arena : {&unit(rank).momentum, &unit(rank).square})
        if (!arena->defined()) *arena = Tensor(unit(rank).gradient.shape(), DType::f32);
    }
  }
};

}  // namespace wisp
