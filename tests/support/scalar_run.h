// Gradients for tests of methods, and a run beside a scalar model.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/random.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"

namespace wisp {

using Floats = std::vector<float>;

/// A worker's gradient in [-0.5, 0.5).
inline Floats noise(int64_t numel, int64_t step, int rank) {
  const Philox random(21, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  Floats values;
  for (uint64_t i = 0; i < static_cast<uint64_t>(numel); ++i)
    values.push_back(random.uniform(i) - 0.5f);
  return values;
}

/// A unit's arena as the rig sees it: one field of one slice from offset 0.
inline Floats values_of(const float* arena, int64_t numel) { return {arena, arena + numel}; }

/// Runs `steps` steps of noise() on a rig of one field and on `model`. The model gets every
/// worker's gradient and returns the result expected of all workers: bit for bit, or within
/// `tolerance`.
using ScalarModel = std::function<Floats(int64_t step, const std::vector<Floats>& gradients)>;
inline void follow(MethodRig& rig, int64_t numel, int64_t steps, double ratio,
                   const ScalarModel& model, float tolerance = 0.0f) {
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Floats> gradients;
    for (int rank = 0; rank < rig.workers(); ++rank) {
      gradients.push_back(noise(numel, step, rank));
      std::copy(gradients.back().begin(), gradients.back().end(), rig.gradient(rank));
    }
    rig.step(step_info(step, ratio));
    const Floats expected = model(step, gradients);
    for (int rank = 0; rank < rig.workers(); ++rank) {
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(rig.gradient(rank)[i], expected[i], tolerance)
            << "step " << step << ", rank " << rank << ", element " << i;
    }
  }
}

}  // namespace wisp
