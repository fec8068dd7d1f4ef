// A rig that drives a method's workers in tests, on the reference backend. One thread.
#pragma once

#include <utility>

#include "distributed/bench/rehearsal.h"

namespace wisp {

class MethodRig : public Rehearsal {
 public:
  /// Makes all arenas, also those that the method does not need.
  MethodRig(int workers, std::vector<Field> fields, const Make& make)
      : Rehearsal(workers, std::move(fields), make) {
    for (int rank = 0; rank < workers; ++rank) {
      for (Tensor* arena : {&unit(rank).momentum, &unit(rank).square})
        if (!arena->defined()) *arena = Tensor(unit(rank).gradient.shape(), DType::f32);
    }
  }
};

}  // namespace wisp
