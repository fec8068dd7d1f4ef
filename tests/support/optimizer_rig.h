// Parameters for tests of optimizers: two segments in f64, one of which decays. One thread.
#pragma once

#include <vector>

#include "core/backend.h"
#include "core/parameter.h"
#include "core/random.h"

namespace wisp {

struct OptimizerRig {
  OptimizerRig()
      : backend(make_reference_backend(pool, stream)),
        context{stream, *backend, pool, DType::f64},
        parameters(context, {&plain, &with_decay}, {}) {
    for (const Segment& segment : parameters.segments()) {
      for (int64_t i = 0; i < segment.numel; ++i)
        weight(segment, i) = 0.5 - 0.25 * static_cast<double>(i);
    }
  }

  double& weight(const Segment& segment, int64_t i) {
    return parameters.weight().data<double>()[segment.offset + i];
  }
  double& gradient(const Segment& segment, int64_t i) {
    return parameters.grad().data<double>()[segment.offset + i];
  }
  double& state(const char* name, const Segment& segment, int64_t i) {
    return parameters.state(name).data<double>()[segment.offset + i];
  }
  const Segment& decayed() { return parameters.segments()[parameters.segments()[1].decay ? 1 : 0]; }
  const Segment& undecayed() {
    return parameters.segments()[parameters.segments()[1].decay ? 0 : 1];
  }

  /// Calls f(segment, i, position counted through both segments).
  template <class F>
  void each(const F& f) {
    size_t at = 0;
    for (const Segment& segment : parameters.segments()) {
      for (int64_t i = 0; i < segment.numel; ++i) f(segment, i, at++);
    }
  }

  MemoryPool pool;
  Stream stream = Stream::immediate();
  std::unique_ptr<Backend> backend;
  Context context;
  Parameter with_decay{"weight", {5}, {}, true, {}};
  Parameter plain{"bias", {3}, {}, false, {}};
  FlatParameters parameters;
};

inline std::vector<UpdateRule> both(UpdateRule rule) { return {rule, rule}; }

}  // namespace wisp
