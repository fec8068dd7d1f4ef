#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

std::unique_ptr<Compressor> onebit() { return make_method("onebit", ""); }

std::vector<Field> matrix_field(int64_t rows, int64_t columns) {
  std::vector<Field> fields = layer_fields({rows * columns});
  fields[0].rows = rows;
  return fields;
}

/// Seide et al. 2014: e + g becomes bits and two means for each column of `length`.
Floats quantize(Floats& residual, const Floats& gradient, size_t length) {
  Floats sent(gradient.size());
  for (size_t begin = 0; begin < sent.size(); begin += length) {
    double sum[2] = {0.0, 0.0};
    int count[2] = {0, 0};
    for (size_t i = begin; i < begin + length; ++i) {
      residual[i] += gradient[i];
      sum[residual[i] >= 0.0f] += static_cast<double>(residual[i]);
      ++count[residual[i] >= 0.0f];
    }
    for (size_t i = begin; i < begin + length; ++i) {
      const int bit = residual[i] >= 0.0f;
      sent[i] = static_cast<float>(sum[bit] / count[bit]);
      residual[i] -= sent[i];
    }
  }
  return sent;
}

TEST(OneBit, FollowsAScalarModelOfThePaper) {
  constexpr size_t kRows = 7, kLength = 45;
  MethodRig rig(3, matrix_field(kRows, kLength), onebit);
  std::vector<Floats> residual(3, Floats(kRows * kLength, 0.0f));
  Floats at_owners(kRows * kLength, 0.0f);
  // the method adds in sixteen lanes, the model in one: 50 steps of rounding
  follow(
      rig, kRows * kLength, 50, 1.0,
      [&](int64_t, const std::vector<Floats>& gradients) {
        Floats sum(kRows * kLength, 0.0f);
        for (size_t rank = 0; rank < 3; ++rank) {
          const Floats sent = quantize(residual[rank], gradients[rank], kLength);
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += sent[i];
        }
        return quantize(at_owners, sum, kLength);
      },
      2e-5f);
}

/// Given = applied + kept by the workers and the owners.
TEST(OneBit, LosesNothing) {
  for (const int workers : {1, 2, 3, 5}) {
    std::vector<Field> fields = layer_fields({30, 12, 1, 200});
    fields[0].rows = 10;
    fields[1].rows = 4;
    const int64_t end = fields.back().slices[0].offset + 200;
    MethodRig rig(workers, fields, onebit);
    std::vector<double> left(static_cast<size_t>(end), 0.0);
    for (int64_t step = 0; step < 30; ++step) {
      for (int rank = 0; rank < workers; ++rank) {
        const Floats g = noise(end, step, rank);
        for (size_t i = 0; i < g.size(); ++i) {
          rig.gradient(rank)[i] = g[i];
          left[i] += static_cast<double>(g[i]);
        }
      }
      rig.step(step_info(step));
      for (size_t i = 0; i < left.size(); ++i) left[i] -= static_cast<double>(rig.gradient(0)[i]);
    }
    for (const Field& field : fields) {
      for (int64_t i = field.slices[0].offset; i < field.slices[0].offset + field.numel; ++i) {
        double kept = 0.0;
        for (int rank = 0; rank < workers; ++rank)
          kept += static_cast<double>(rig.state(rank, "residual").data<float>()[i]) +
                  static_cast<double>(rig.state(rank, "owner_residual").data<float>()[i]);
        // f32 rounding of 30 · (workers + 1) additions of numbers below 8
        EXPECT_NEAR(left[static_cast<size_t>(i)], kept, 2e-4) << workers << " workers, " << i;
      }
    }
  }
}

TEST(OneBit, SendsTwoMeansAndABitPerElementOfAColumn) {
  MethodRig rig(1, matrix_field(2, 3), onebit);
  const Floats g{1, -2, 3, -1, -5, -0.0f};
  std::copy(g.begin(), g.end(), rig.gradient(0));
  rig.step(step_info(0));
  const std::vector<std::byte>& sent = rig.sent(0, 0);
  ASSERT_EQ(sent.size(), 2u * 8 + 2 + 2);  // padded to 4 bytes
  float means[4];
  std::memcpy(means, sent.data(), sizeof means);
  EXPECT_EQ(Floats(means, means + 4), (Floats{-2, 2, -3, 0}));
  EXPECT_EQ(sent[16], std::byte{0b101});
  EXPECT_EQ(sent[17], std::byte{0b100});
}

TEST(OneBit, ForgetsTheRestWithoutFeedback) {
  const auto made = make_method("onebit", "compression.feedback = \"none\"");
  EXPECT_TRUE(made->state({}, 2).empty());
  EXPECT_EQ(error_of([] { make_method("onebit", "compression.feedback = \"ef21\""); }),
            "test.toml:1: onebit's two residuals are in units of the gradient: "
            "compression.feedback is ef or none");
}

TEST(OneBit, RefusesAPayloadOfAnotherSize) {
  UnitRig rig(matrix_field(4, 25), onebit());
  EXPECT_EQ(error_of([&] { rig.decode({}, {PayloadBytes(44)}); }),
            "onebit: the payload of rank 0 has 44 bytes, expected 48");
}

}  // namespace
}  // namespace wisp
