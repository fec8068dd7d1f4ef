#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/matrices.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr int kWorkers = 3;

StepInfo info_of(int64_t step) {
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

/// Two workers of rank 1 that start from Q = (1, 0, 0)ᵀ, by hand from Vogels et al. 2019.
void follow(const std::string& form, const std::vector<std::vector<double>>& residuals) {
  const std::vector<Field> fields = matrix_fields({{2, 3}});
  MethodRig rig = powersgd(2, fields, "[compression]\nrank = 1\nresidual_form = \"" + form + "\"");
  const std::vector<std::vector<float>> m = {{1, 2, 3, 4, 5, 6}, {0, 1, 0, 1, 0, -1}};
  for (int rank = 0; rank < 2; ++rank) {
    rig.state(rank, "q").data<float>()[0] = 1.0f;
    for (size_t i = 0; i < 6; ++i) rig.gradient(rank)[i] = m[static_cast<size_t>(rank)][i] / 2;
  }
  rig.step(info_of(0));
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
  follow("aggregated", {{0.5, 1.461538, 2.461538, 1.5, 2.307692, 3.307692},
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
  follow("local", residuals);
}

// ---------------------------------------------------------------- the paper, in scalars

/// One matrix of Vogels et al. 2019, algorithms 1 and 2, as plain as it can be.
struct ScalarModel {
  bool local, warm;
  int iterations;
  DenseMatrix q;
  std::vector<DenseMatrix> e;  // by worker

  /// The mean of what all workers have, compressed; `drawn` is where a cold start begins.
  DenseMatrix step(std::vector<DenseMatrix> m, const DenseMatrix& drawn) {
    const double n = static_cast<double>(m.size());
    for (size_t i = 0; i < m.size(); ++i) m[i] = m[i] + e[i];
    DenseMatrix mean(m[0].rows(), m[0].columns());
    for (const DenseMatrix& own : m) mean = mean.plus(own, 1.0 / n);
    if (!warm) q = drawn;
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
};

void compare_with_scalars(const std::string& toml, bool local, bool warm, int iterations) {
  const std::vector<Extents> sizes = {{12, 20}, {5, 7}, {30, 2}};
  const std::vector<int64_t> ranks = {3, 3, 2};
  const std::vector<Field> fields = matrix_fields(sizes);
  MethodRig rig = powersgd(kWorkers, fields, "[compression]\nrank = 3\n" + toml);
  std::vector<ScalarModel> scalars;
  const auto drawn = [&](size_t f, int64_t step) {
    const auto [rows, columns] = sizes[f];
    DenseMatrix q(columns, ranks[f]);
    const Philox random(11, static_cast<uint64_t>(step), fields[f].key);
    for (int64_t c = 0; c < ranks[f]; ++c)
      for (int64_t i = 0; i < columns; ++i)
        q(i, c) = random.nearly_normal(static_cast<uint64_t>(ranks[f] * rows + c * columns + i));
    return q;
  };
  for (size_t f = 0; f < sizes.size(); ++f) {
    scalars.push_back({local, warm, iterations, drawn(f, 0), {}});
    scalars[f].e.assign(kWorkers, DenseMatrix(sizes[f].rows, sizes[f].columns));
  }
  for (int64_t step = 0; step < 50; ++step) {
    std::vector<std::vector<DenseMatrix>> m(sizes.size());
    for (size_t f = 0; f < sizes.size(); ++f) {
      const auto [rows, columns] = sizes[f];
      const DenseMatrix signal = random_of_rank(2, rows, columns, f);  // what all steps share
      for (int rank = 0; rank < kWorkers; ++rank) {
        const auto id = static_cast<uint64_t>(1000 + (step * kWorkers + rank) * 10) + f;
        m[f].push_back(signal.plus(random_matrix(rows, columns, id), 0.3));
        write_matrix(m[f].back().plus(m[f].back(), 1.0 / kWorkers - 1.0), rig.gradient(rank),
                     fields[f]);
      }
    }
    rig.step(info_of(step));
    for (size_t f = 0; f < sizes.size(); ++f) {
      const DenseMatrix expected = scalars[f].step(m[f], drawn(f, step));
      for (int rank = 0; rank < kWorkers; ++rank) {
        // 2e-5: f32 rounding of one step
        const DenseMatrix found = read_matrix(rig.gradient(rank), fields[f]);
        ASSERT_LT((found - expected).norm(), 2e-5 * expected.norm()) << "step " << step << " " << f;
        const DenseMatrix share = read_matrix(rig.state(rank, "residual").data<float>(), fields[f]);
        const DenseMatrix residual = share.plus(share, kWorkers - 1.0);
        DenseMatrix& scalar = scalars[f].e[static_cast<size_t>(rank)];
        ASSERT_LT((scalar - residual).norm(), 2e-5 * expected.norm())
            << "step " << step << " " << f;
        // Directions of nearly equal weight take turns in this iteration, which would make more of
        // the rounding in every step.
        scalar = residual;
      }
      const DenseMatrix q = factor_matrix(rig, 0, f, 'q').transposed();
      ASSERT_LT((scalars[f].q - q).norm(), 2e-5 * q.norm()) << "step " << step << " " << f;
      scalars[f].q = q;
    }
  }
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
