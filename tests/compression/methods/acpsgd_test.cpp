#include <gtest/gtest.h>

#include "tests/support/matrix_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

StepInfo acpsgd_info(int64_t step) {
  StepInfo info;
  info.step = info.applied = step;
  info.seed = 11;
  return info;
}

MethodRig acpsgd(int workers, const std::vector<Field>& fields, const std::string& toml) {
  return MethodRig(workers, fields,
                   [=] { return make_method("acpsgd", toml, {.workers = workers}); });
}

// ---------------------------------------------------------------- the paper, in scalars

/// A plain model of Zhang et al. 2023 for one matrix.
struct ScalarAcpsgd {
  DenseMatrix p, q;
  std::vector<DenseMatrix> e;  // by worker

  /// The compressed mean over all workers.
  DenseMatrix step(std::vector<DenseMatrix> m, const StepInfo& info) {
    const bool compute_p = info.applied % 2 == 0;
    const double n = static_cast<double>(m.size());
    if (compute_p) {
      q = q.orthonormal();
    } else {
      p = p.orthonormal();
    }
    DenseMatrix sum(compute_p ? p.rows() : q.rows(), p.columns());
    for (size_t i = 0; i < m.size(); ++i) {
      m[i] = m[i] + e[i];
      const DenseMatrix own = compute_p ? m[i] * q : m[i].transposed() * p;
      e[i] = m[i] - (compute_p ? own * q.transposed() : p * own.transposed());
      sum = sum.plus(own, 1.0 / n);
    }
    (compute_p ? p : q) = sum;
    return p * q.transposed();
  }
  void go_on(MethodRig& rig, size_t f) {
    p = factor_matrix(rig, 0, f, 'p').transposed();
    q = factor_matrix(rig, 0, f, 'q').transposed();
  }
};

TEST(AcpSgd, FollowsAScalarModelOfThePaper) {
  constexpr int kWorkers = 3;
  const std::vector<int64_t> ranks = {3, 3, 2};
  const std::vector<Field> fields = matrix_fields({{12, 20}, {5, 7}, {30, 2}});
  MethodRig rig = acpsgd(kWorkers, fields, "compression.rank = 3");
  std::vector<ScalarAcpsgd> scalars;
  for (size_t f = 0; f < fields.size(); ++f) {
    const DenseMatrix zeros(fields[f].rows, fields[f].numel / fields[f].rows);
    scalars.push_back({DenseMatrix(fields[f].rows, ranks[f]),
                       drawn_q(fields[f], ranks[f], acpsgd_info(0)),
                       std::vector<DenseMatrix>(kWorkers, zeros)});
  }
  follow_matrices(rig, fields, scalars, acpsgd_info);
}

// ---------------------------------------------------------------- laws

TEST(AcpSgd, HasAConstantOfItsRankAfterBothSteps) {
  const std::vector<Field> fields = matrix_fields({{20, 30}});
  MethodRig rig = acpsgd(2, fields, "compression.rank = 4");
  const DenseMatrix m = random_of_rank(4, 20, 30, 0);
  const auto residual = [&] {
    return read_matrix(rig.state(0, "residual").data<float>(), fields[0]);
  };
  DenseMatrix left(20, 30);  // sum of both workers' residuals, which are equal
  for (int64_t step = 0; step < 6; ++step) {
    for (int rank = 0; rank < 2; ++rank)
      write_matrix(m.plus(m, -0.5), rig.gradient(rank), fields[0]);
    rig.step(acpsgd_info(step));
    if (step % 2 == 1) {  // P spans all columns; 1e-5: f32 rounding
      EXPECT_LT((read_matrix(rig.gradient(0), fields[0]) - m - left).norm(), 1e-5 * m.norm());
      EXPECT_LT(residual().norm(), 1e-5 * m.norm()) << step;
    }
    left = residual() + residual();
  }
}

TEST(AcpSgd, SendsOneFactorAndThenTheOther) {
  const std::vector<Field> fields = matrix_fields({{20, 30}, {8, 9}});
  const auto method = make_method("acpsgd", "compression.rank = 2");
  const UnitSpec spec{fields, 20 * 30 + 8 * 9};
  for (int64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(method->rounds(spec, acpsgd_info(step)), 1);
    EXPECT_EQ(method->message(spec, acpsgd_info(step), 0).bytes,
              4 * 2 * (step % 2 == 0 ? 20 + 8 : 30 + 9));
  }
}

/// Aggregation in compressed form. With integers and a fixed Q of unit vectors, it is exact.
TEST(AcpSgd, DecodesASumAsTheSumOfWhatItDecodes) {
  const std::vector<Field> fields = matrix_fields({{7, 5}});
  MethodRig rig = acpsgd(1, fields, "compression.rank = 2");
  const auto decode = [&](const std::vector<float>& p) {
    factor_state(rig, 0, 0, 'q').data<float>()[1] = 1.0f;      // column 0: e1
    factor_state(rig, 0, 0, 'q').data<float>()[5 + 3] = 1.0f;  // column 1: e3
    Tensor sum({static_cast<int64_t>(p.size())}, DType::f32);
    std::copy(p.begin(), p.end(), sum.data<float>());
    const Payload payload{-1, sum.raw(), sum.bytes()};
    rig.compressor(0).decode(rig.context(), rig.unit(0), acpsgd_info(0), 0, {&payload, 1});
    return std::vector<float>(rig.gradient(0), rig.gradient(0) + 35);
  };
  std::vector<float> sum(14, 0.0f), decoded(35, 0.0f);
  for (int worker = 0; worker < 5; ++worker) {
    std::vector<float> p;
    for (int i = 0; i < 14; ++i) p.push_back(static_cast<float>((worker + 1) * (i * 37 % 23 - 11)));
    const std::vector<float> own = decode(p);
    for (size_t i = 0; i < 35; ++i) decoded[i] += own[i];
    for (size_t i = 0; i < 14; ++i) sum[i] += p[i];
  }
  EXPECT_EQ(decode(sum), decoded);
}

}  // namespace
}  // namespace wisp
