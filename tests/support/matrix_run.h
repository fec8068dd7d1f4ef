// A run of a low-rank method beside a model in double precision.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/matrices.h"

namespace wisp {

/// Runs 50 steps on a rig, and on a scalar model of each of its matrices, which has
///   DenseMatrix step(std::vector<DenseMatrix> m, const StepInfo&)   result of the workers' m
///   std::vector<DenseMatrix> e                                      residuals, by worker
///   void go_on(MethodRig&, size_t f)                                takes the rig's factors
/// Checks that the rig's results and residuals equal the model's.
template <class Model, class InfoOf>
void follow_matrices(MethodRig& rig, const std::vector<Field>& fields, std::vector<Model>& models,
                     const InfoOf& info_of) {
  const int workers = rig.workers();
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<std::vector<DenseMatrix>> m(fields.size());
    for (size_t f = 0; f < fields.size(); ++f) {
      const int64_t rows = fields[f].rows, columns = fields[f].numel / rows;
      const DenseMatrix signal = random_of_rank(2, rows, columns, f);  // signal common to all steps
      for (int rank = 0; rank < workers; ++rank) {
        const auto id = static_cast<uint64_t>(1000 + (step * workers + rank) * 10) + f;
        m[f].push_back(signal.plus(random_matrix(rows, columns, id), 0.3));
        write_matrix(m[f].back().plus(m[f].back(), 1.0 / workers - 1.0), rig.gradient(rank),
                     fields[f]);
      }
    }
    rig.step(info_of(step));
    for (size_t f = 0; f < fields.size(); ++f) {
      const DenseMatrix expected = models[f].step(m[f], info_of(step));
      const double tolerance = 2e-5 * expected.norm();  // f32 rounding of one step
      for (int rank = 0; rank < workers; ++rank) {
        const DenseMatrix found = read_matrix(rig.gradient(rank), fields[f]);
        ASSERT_LT((found - expected).norm(), tolerance) << "step " << step << " " << f;
        const DenseMatrix share = read_matrix(rig.state(rank, "residual").data<float>(), fields[f]);
        const DenseMatrix residual = share.plus(share, workers - 1.0);
        DenseMatrix& scalar = models[f].e[static_cast<size_t>(rank)];
        ASSERT_LT((scalar - residual).norm(), tolerance) << "step " << step << " " << f;
        // Directions of nearly equal weight take turns in this iteration, which would amplify the
        // rounding with every step.
        scalar = residual;
      }
      models[f].go_on(rig, f);
    }
  }
}

}  // namespace wisp
