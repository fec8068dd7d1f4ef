#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/matrix_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo powersgd_info(int64_t step) {
  StepInfo info;
  info.step = info.applied = step;
  info.lr = 0.1;
  info.last_lr = step > 0 ? 0.1 : 0.0;
  info.seed = 11;
  return info;
}

MethodRig powersgd(int workers, const std::vector<Field>& fields, const std::string& toml) {
  return MethodRig(workers, fields,
                   [=] { return make_method("powersgd", toml, {.workers = workers}); });
}

// ---------------------------------------------------------------- golden vectors

/// Two workers of rank 1 that start from Q = (1, 0, 0)ᵀ. Numbers by hand from Vogels et al. 2019.
void follow_golden_vectors(const std::string& form,
                           const std::vector<std::vector<double>>& residuals) {
  const std::vector<Field> fields = matrix_fields({{2, 3}});
  MethodRig rig = powersgd(2, fields, "[compression]\nrank = 1\nresidual_form = \"" + form + "\"");
  const std::vector<std::vector<float>> m = {{1, 2, 3, 4, 5, 6}, {0, 1, 0, 1, 0, -1}};
  for (int rank = 0; rank < 2; ++rank) {
    rig.state(rank, "q").data<float>()[0] = 1.0f;
    for (size_t i = 0; i < 6; ++i) rig.gradient(rank)[i] = m[static_cast<size_t>(rank)][i] / 2;
  }
  rig.step(powersgd_info(0));
  const std::vector<double> p = {0.196116, 0.980581}, q = {2.54951, 2.745626, 2.745626};
  const std::vector<double> mean = {0.5, 0.538462, 0.538462, 2.5, 2.692308, 2.692308};
  for (int rank = 0; rank < 2; ++rank) {
    // 2e-6: the vectors have six decimals
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(rig.state(rank, "p").data<float>()[i], p[i], 2e-6);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rig.state(rank, "q").data<float>()[i], q[i], 2e-6);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(rig.gradient(rank)[i], mean[i], 2e-6);
      const double residual = residuals[static_cast<size_t>(rank)][i] / 2;
      EXPECT_NEAR(rig.state(rank, "residual").data<float>()[i], residual, 2e-6) << i;
    }
  }
}

TEST(PowerSgd, FollowsTheGoldenVectors) {
  follow_golden_vectors("aggregated", {{0.5, 1.461538, 2.461538, 1.5, 2.307692, 3.307692},
                                       {-0.5, 0.461538, -0.538462, -1.5, -2.692308, -3.692308}});
}

TEST(PowerSgd, FollowsTheGoldenVectorsOfTheLocalResidual) {
  // M_i - p (pᵀ M_i), p = (1, 5) / sqrt(26)
  std::vector<std::vector<double>> residuals;
  for (const std::vector<double>& m :
       {std::vector<double>{1, 2, 3, 4, 5, 6}, std::vector<double>{0, 1, 0, 1, 0, -1}}) {
    residuals.emplace_back();
    for (size_t i = 0; i < 6; ++i) {
      const double along = (m[i % 3] + 5 * m[3 + i % 3]) / 26;
      residuals.back().push_back(m[i] - (i < 3 ? 1 : 5) * along);
    }
  }
  follow_golden_vectors("local", residuals);
}

// ---------------------------------------------------------------- the paper, in scalars

/// A plain model of Vogels et al. 2019, algorithms 1 and 2, for one matrix.
struct ScalarPowersgd {
  bool local, warm;
  int iterations;
  Field field;
  DenseMatrix q;
  std::vector<DenseMatrix> e;  // by worker

  /// The compressed mean over all workers.
  DenseMatrix step(std::vector<DenseMatrix> m, const StepInfo& info) {
    const double n = static_cast<double>(m.size());
    for (size_t i = 0; i < m.size(); ++i) m[i] = m[i] + e[i];
    DenseMatrix mean(m[0].rows(), m[0].columns());
    for (const DenseMatrix& own : m) mean = mean.plus(own, 1.0 / n);
    if (!warm) q = drawn_q(field, q.columns(), info);
    DenseMatrix p(0, 0);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      p = (mean * q).orthonormal();
      q = mean.transposed() * p;
    }
    const DenseMatrix result = p * q.transposed();
    for (size_t i = 0; i < m.size(); ++i)
      e[i] = m[i] - (local ? p * (p.transposed() * m[i]) : result);
    return result;
  }
  void go_on(MethodRig& rig, size_t f) {
    const DenseMatrix found = factor_matrix(rig, 0, f, 'q').transposed();
    EXPECT_LT((q - found).norm(), 2e-5 * found.norm());
    q = found;
  }
};

void compare_with_scalars(const std::string& toml, bool local, bool warm, int iterations) {
  constexpr int kWorkers = 3;
  const std::vector<int64_t> ranks = {3, 3, 2};
  const std::vector<Field> fields = matrix_fields({{12, 20}, {5, 7}, {30, 2}});
  MethodRig rig = powersgd(kWorkers, fields, "[compression]\nrank = 3\n" + toml);
  std::vector<ScalarPowersgd> scalars;
  for (size_t f = 0; f < fields.size(); ++f) {
    const DenseMatrix zeros(fields[f].rows, fields[f].numel / fields[f].rows);
    scalars.push_back({local, warm, iterations, fields[f],
                       drawn_q(fields[f], ranks[f], powersgd_info(0)),
                       std::vector<DenseMatrix>(kWorkers, zeros)});
  }
  follow_matrices(rig, fields, scalars, powersgd_info);
}

TEST(PowerSgd, FollowsAScalarModelOfThePaper) { compare_with_scalars("", false, true, 1); }

TEST(PowerSgd, FollowsAScalarModelWithLocalResidualsAndTwoIterations) {
  compare_with_scalars("residual_form = \"local\"\npower_iterations = 2", true, true, 2);
}

TEST(PowerSgd, FollowsAScalarModelWithoutAWarmStart) {
  compare_with_scalars("warm_start = false", false, false, 1);
}

}  // namespace
}  // namespace wisp
