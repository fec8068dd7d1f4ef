// Laws of both low-rank methods.
#include "compression/low_rank/low_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "distributed/exchange/slot.h"
#include "tests/support/error_of.h"
#include "tests/support/resnet50_matrices.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr int kWorkers = 3;

StepInfo info_of(int64_t step) {
  StepInfo info;
  info.step = info.applied = step;
  info.lr = 0.1;
  info.last_lr = step > 0 ? 0.1 : 0.0;
  info.seed = 3;
  return info;
}

MethodRig rig_of(const std::string& method, int workers, const std::vector<Field>& fields,
                 const std::string& toml) {
  return MethodRig(workers, fields,
                   [=] { return make_method(method, toml, {.workers = workers}); });
}

void draw(MethodRig& rig, const std::vector<Field>& fields, int64_t step, double size = 1.0) {
  for (int rank = 0; rank < rig.workers(); ++rank) {
    for (size_t f = 0; f < fields.size(); ++f) {
      const auto id = static_cast<uint64_t>((step * 8 + rank) * 64) + f;
      const DenseMatrix drawn = random_matrix(fields[f].rows, fields[f].numel / fields[f].rows, id);
      write_matrix(drawn.plus(drawn, size - 1.0), rig.gradient(rank), fields[f]);
    }
  }
}

class LowRankMethod : public testing::TestWithParam<const char*> {
 protected:
  MethodRig rig(int workers, const std::vector<Field>& fields, const std::string& toml) {
    return rig_of(GetParam(), workers, fields, toml);
  }
};

INSTANTIATE_TEST_SUITE_P(LowRank, LowRankMethod, testing::Values("powersgd", "acpsgd"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---------------------------------------------------------------- message sizes

std::vector<Extents> resnet18_cifar() {
  std::vector<Extents> matrices = {{64, 3 * 9}, {10, 512}};
  for (const int64_t width : {64, 128, 256, 512}) {
    const int64_t in = width == 64 ? 64 : width / 2;
    matrices.insert(matrices.end(),
                    {{width, in * 9}, {width, width * 9}, {width, width * 9}, {width, width * 9}});
    if (in != width) matrices.push_back({width, in});
  }
  return matrices;
}

int64_t numbers_sent(const std::string& method, int64_t rank, const std::vector<Extents>& matrices,
                     int64_t step) {
  const auto compressor = make_method(method, concat("compression.rank = ", rank));
  const std::vector<Field> fields = matrix_fields(matrices);
  const UnitSpec spec{fields, 0};
  int64_t bytes = 0;
  for (int round = 0; round < compressor->rounds(spec, info_of(step)); ++round)
    bytes += compressor->message(spec, info_of(step), round).bytes;
  return bytes / 4;
}

/// The published sizes include the model's vectors, which travel dense.
TEST(LowRank, SendsThePublishedNumbers) {
  const std::vector<std::pair<int64_t, int64_t>> published = {
      {1, 45'935}, {2, 82'260}, {4, 154'910}, {7, 263'885}};
  for (const auto& [rank, numbers] : published)
    EXPECT_EQ(numbers_sent("powersgd", rank, resnet18_cifar(), 0) + 9'610, numbers);
  EXPECT_EQ(numbers_sent("acpsgd", 4, resnet50_matrices(), 0) + 54'120, 164'360);  // P
  EXPECT_EQ(numbers_sent("acpsgd", 4, resnet50_matrices(), 1) + 54'120, 273'844);  // Q
}

TEST_P(LowRankMethod, SendsTheBytesOfItsLaw) {
  const std::vector<Field> fields = matrix_fields({{12, 20}, {1, 9}, {30, 2}, {1, 1}});
  const int64_t p = 3 * 12 + 1 + 2 * 30 + 1, q = 3 * 20 + 9 + 2 * 2 + 1;
  for (const auto& [values, bytes] : {std::pair("f32", 4), std::pair("f16", 2), {"bf16", 2}}) {
    MethodRig rig =
        this->rig(2, fields, concat("[compression]\nrank = 3\nvalues = \"", values, "\""));
    for (int64_t step = 0; step < 2; ++step) {
      draw(rig, fields, step);
      rig.step(info_of(step));
      const auto sent = static_cast<int64_t>(rig.sent(1, 0).size());
      EXPECT_EQ(sent, bytes * (step == 0 || std::string(GetParam()) == "powersgd" ? p : q));
    }
  }
}

/// The fusion rule of ACP-SGD: a round has as many buffers as a dense run, but smaller ones.
TEST_P(LowRankMethod, NeedsAsManyCollectivesAsADenseRun) {
  std::vector<Segment> segments;
  int64_t offset = 0;
  for (const Extents& extents : resnet50_matrices()) {
    const Shape shape{extents.rows, extents.columns};
    for (const Shape& each : {shape, Shape{extents.rows}}) {
      segments.push_back({.id = static_cast<int>(segments.size()),
                          .name = concat("p", segments.size()),
                          .shape = each,
                          .offset = offset,
                          .numel = each.numel()});
      offset += each.numel();
    }
  }
  std::vector<int> dense(segments.size(), kDense), matrices = dense;
  for (size_t i = 0; i < matrices.size(); i += 2) matrices[i] = 0;
  const BucketOptions options{.bucket_bytes = 25'000'000};
  const std::vector<CutMethod> planned(1);
  const Cut cut = make_cut(segments, 4, matrices, planned, options, {});
  const Cut dense_cut = make_cut(segments, 4, dense, planned, options, {});
  EXPECT_EQ(cut.buckets.size(), 4u);  // 102 MB in all
  const size_t dense_slots = make_slots(dense_cut, {}, DType::f32).size();
  const auto method = make_method(GetParam(), "");
  std::vector<UnitRounds> rounds(cut.units.size());
  int per_step = 0;
  for (size_t unit = 0; unit < rounds.size(); ++unit) {
    rounds[unit].compressed = true;
    per_step = method->rounds(cut.units[unit].spec(), info_of(0));
    for (int round = 0; round < per_step; ++round)
      rounds[unit].messages.push_back(method->message(cut.units[unit].spec(), info_of(0), round));
  }
  EXPECT_EQ(make_slots(cut, rounds, DType::f32).size(),
            static_cast<size_t>(per_step) * dense_slots);
}

// ---------------------------------------------------------------- laws

TEST_P(LowRankMethod, LosesNothing) {
  const std::vector<Field> fields = matrix_fields({{12, 20}, {5, 7}, {1, 6}, {30, 2}});
  for (const char* values : {"f32", "f16", "bf16"}) {
    for (const char* form : {"aggregated", "local"}) {
      const bool acp = std::string(GetParam()) == "acpsgd";
      MethodRig rig = this->rig(kWorkers, fields,
                                concat("[compression]\nrank = 2\nvalues = \"", values, "\"\n",
                                       acp ? "" : concat("residual_form = \"", form, "\"")));
      // A worker's residual keeps its own rounding. Only the aggregated form knows the sum's
      // rounding. f32: some roundings; 16 bits: half a unit in the last place of 8 or 11 bits.
      const bool knows = !acp && std::string(form) == "aggregated";
      const double wire = std::string(values) == "f16" ? 0x1p-11 : 0x1p-8;
      const double tolerance = knows || std::string(values) == "f32" ? 2e-6 : wire;
      for (int64_t step = 0; step < 20; ++step) {
        std::vector<DenseMatrix> given;
        draw(rig, fields, step);
        rig.unit(1).finite = step % 4 != 3;
        const auto add = [&](size_t f, const char* what, DenseMatrix& sum) {
          for (int rank = 0; rank < kWorkers; ++rank) {
            const bool arrives = std::string(what) == "gradient";
            if (arrives && !rig.unit(rank).finite) continue;  // contributes zero
            const float* arena =
                arrives ? rig.gradient(rank) : rig.state(rank, "residual").data<float>();
            sum = sum + read_matrix(arena, fields[f]);
          }
        };
        for (size_t f = 0; f < fields.size(); ++f) {
          given.emplace_back(fields[f].rows, fields[f].numel / fields[f].rows);
          add(f, "gradient", given[f]);
          add(f, "residual", given[f]);
        }
        rig.step(info_of(step));
        for (size_t f = 0; f < fields.size(); ++f) {
          DenseMatrix found = read_matrix(rig.gradient(0), fields[f]);
          add(f, "residual", found);
          ASSERT_LT((found - given[f]).norm(), tolerance * given[f].norm())
              << values << " " << form << " step " << step << " field " << f;
        }
      }
    }
  }
}

TEST_P(LowRankMethod, IsTheSameOnAllWorkersForAThousandSteps) {
  const std::vector<Field> fields = matrix_fields({{6, 9}, {8, 3}});
  MethodRig rig = this->rig(kWorkers, fields, "compression.rank = 2");
  const auto equal = [](const Tensor& a, const Tensor& b) {
    return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
  };
  for (int64_t step = 0; step < 1000; ++step) {
    draw(rig, fields, step);
    rig.step(info_of(step));
    for (int rank = 1; rank < kWorkers; ++rank) {
      for (size_t f = 0; f < fields.size(); ++f) {
        for (const char name : {'p', 'q'})
          ASSERT_TRUE(equal(factor_state(rig, rank, f, name), factor_state(rig, 0, f, name)));
      }
      ASSERT_TRUE(equal(rig.unit(rank).gradient, rig.unit(0).gradient)) << step;
    }
  }
}

/// PowerSGD in each step, and ACP-SGD from its second one on, has a factor that spans all of M.
TEST_P(LowRankMethod, HasAMatrixOfItsRankWhole) {
  const std::vector<Field> fields = matrix_fields({{20, 30}, {4, 9}, {9, 4}});
  for (const int64_t rank : {int64_t{4}, int64_t{100}}) {  // 100 exceeds the matrices, so full rank
    MethodRig rig =
        this->rig(2, fields, concat("[compression]\nfeedback = \"none\"\nrank = ", rank));
    for (int64_t step = 0; step < 4; ++step) {
      std::vector<DenseMatrix> mean;
      for (size_t f = 0; f < fields.size(); ++f) {
        const int64_t columns = fields[f].numel / fields[f].rows;
        mean.push_back(rank == 4 ? random_of_rank(4, fields[f].rows, columns, f)
                                 : random_matrix(fields[f].rows, columns, f));
        const DenseMatrix apart = random_matrix(fields[f].rows, columns, 99);  // full rank
        write_matrix(mean[f].plus(mean[f], -0.5) + apart, rig.gradient(0), fields[f]);
        write_matrix(mean[f].plus(mean[f], -0.5) - apart, rig.gradient(1), fields[f]);
      }
      rig.step(info_of(step));
      for (size_t f = 0; f < fields.size(); ++f) {
        if (step == 0 && std::string(GetParam()) == "acpsgd") continue;
        EXPECT_LT((read_matrix(rig.gradient(0), fields[f]) - mean[f]).norm(),
                  1e-5 * mean[f].norm())  // f32 rounding
            << "step " << step << " field " << f;
      }
    }
  }
}

/// The paper's code adds 1e-8 to norms, so after a step without a gradient Q is 0 for ever.
TEST_P(LowRankMethod, WakesUpAfterAZeroGradient) {
  const std::vector<Field> fields = matrix_fields({{10, 12}});
  MethodRig rig = this->rig(2, fields, "[compression]\nrank = 2\nfeedback = \"none\"");
  const DenseMatrix m = random_of_rank(2, 10, 12, 0);
  for (int64_t step = 0; step < 8; ++step) {
    for (int rank = 0; rank < 2; ++rank)
      write_matrix(step < 4 ? m - m : m.plus(m, -0.5), rig.gradient(rank), fields[0]);
    rig.step(info_of(step));
    if (step < 4) {
      EXPECT_EQ(read_matrix(rig.gradient(0), fields[0]).norm(), 0.0);
    }
  }
  EXPECT_LT((read_matrix(rig.gradient(0), fields[0]) - m).norm(), 1e-5 * m.norm());
}

/// All columns of M Q are the same except for their length, so only one of them may count.
TEST_P(LowRankMethod, CountsDependentColumnsOnce) {
  const std::vector<Field> fields = matrix_fields({{16, 10}});
  MethodRig rig = this->rig(1, fields, "[compression]\nrank = 3\nfeedback = \"none\"");
  DenseMatrix m(16, 10);
  for (int64_t j = 0; j < 10; ++j) m(5, j) = static_cast<double>(j + 1);  // only one row
  for (int64_t step = 0; step < 6; ++step) {
    write_matrix(m, rig.gradient(0), fields[0]);
    rig.step(info_of(step));
    if (step == 0 && std::string(GetParam()) == "acpsgd") continue;
    EXPECT_LT((read_matrix(rig.gradient(0), fields[0]) - m).norm(), 1e-5 * m.norm()) << step;
  }
}

TEST_P(LowRankMethod, SurvivesAnyFiniteNumbers) {
  const std::vector<Field> fields = matrix_fields({{6, 8}, {1, 1}, {1, 5}, {7, 1}});
  for (const char* values : {"f32", "f16", "bf16"}) {
    for (const float number : {0.0f, 1.0f, -1e-42f, 1e-30f, 1e30f}) {
      MethodRig rig =
          this->rig(kWorkers, fields, concat("[compression]\nrank = 2\nvalues = \"", values, "\""));
      for (int64_t step = 0; step < 6; ++step) {
        for (int rank = 0; rank < kWorkers; ++rank)
          std::fill_n(rig.gradient(rank), rig.unit(rank).gradient.numel(), number);
        rig.step(info_of(step));
        for (const Field& field : fields) {
          const DenseMatrix found = read_matrix(rig.gradient(0), field);
          const DenseMatrix kept = read_matrix(rig.state(1, "residual").data<float>(), field);
          ASSERT_TRUE(std::isfinite(found.norm()) && std::isfinite(kept.norm()))
              << values << " " << number << " step " << step;
        }
      }
    }
  }
}

/// Except in PowerSGD's aggregated form, whose residual is a share of what all did not send.
TEST_P(LowRankMethod, KeepsItsOwnResidualIfTheGradientIsNotFinite) {
  const std::vector<Field> fields = matrix_fields({{10, 12}});
  const bool powersgd = std::string(GetParam()) == "powersgd";
  MethodRig rig =
      this->rig(kWorkers, fields,
                concat("[compression]\nrank = 2\n", powersgd ? "residual_form = \"local\"" : ""));
  for (int64_t step = 0; step < 2; ++step) {
    draw(rig, fields, step);
    rig.step(info_of(step));
  }
  const Tensor& residual = rig.state(1, "residual");
  const std::vector<float> before(residual.data<float>(), residual.data<float>() + 120);
  const DenseMatrix q = factor_matrix(rig, 0, 0, 'q');
  const DenseMatrix p = factor_matrix(rig, 0, 0, 'p');
  draw(rig, fields, 2);
  rig.gradient(1)[7] = std::numeric_limits<float>::quiet_NaN();
  rig.unit(1).finite = false;
  DenseMatrix given(10, 12);  // sum of the others
  for (const int rank : {0, 2}) {
    given = given + read_matrix(rig.gradient(rank), fields[0]) +
            read_matrix(rig.state(rank, "residual").data<float>(), fields[0]);
  }
  rig.step(info_of(2));
  EXPECT_EQ(std::vector<float>(residual.data<float>(), residual.data<float>() + 120), before);
  const DenseMatrix result = read_matrix(rig.gradient(1), fields[0]);
  EXPECT_LT(result.norm(), given.norm()) << "a projection of what the others have";
  EXPECT_GT(result.norm(), 0.0);
  EXPECT_GT((factor_matrix(rig, 1, 0, 'p') - p).norm(), 0.0);  // shared state changes
  EXPECT_GT((factor_matrix(rig, 1, 0, 'q') - q).norm(), 0.0);
  for (int rank = 1; rank < kWorkers; ++rank) {
    for (const char name : {'p', 'q'})
      EXPECT_EQ((factor_matrix(rig, rank, 0, name) - factor_matrix(rig, 0, 0, name)).norm(), 0.0);
  }
}

TEST_P(LowRankMethod, KeepsTheUpdateUnitsOfItsResidual) {
  const std::vector<Field> fields = matrix_fields({{4, 4}});
  MethodRig rig = this->rig(1, fields, "[compression]\nrank = 4\nresidual = \"update\"");
  rig.state(0, "residual").data<float>()[5] = 3.0f;
  StepInfo info = info_of(1);
  info.lr = 0.05;  // was 0.1: the residual counts twice
  rig.step(info);
  EXPECT_NEAR(rig.gradient(0)[5], 6.0f, 1e-5);
}

TEST_P(LowRankMethod, KeepsTheUpdateOverAStepThatIsNotFinite) {
  const std::vector<Field> fields = matrix_fields({{4, 4}});
  MethodRig rig = this->rig(1, fields, "[compression]\nrank = 4\nresidual = \"update\"");
  rig.state(0, "residual").data<float>()[5] = 3.0f;
  StepInfo info = info_of(1);
  info.lr = 0.05;
  rig.unit(0).finite = false;
  rig.step(info);
  EXPECT_EQ(rig.state(0, "residual").data<float>()[5], 6.0f);  // 0.05 · 6 = 0.1 · 3
}

TEST_P(LowRankMethod, RefusesAPayloadOfAnotherSize) {
  const std::vector<Field> fields = matrix_fields({{10, 12}});
  MethodRig rig = this->rig(1, fields, "compression.rank = 2");
  draw(rig, fields, 0);
  rig.step(info_of(0));
  Tensor sum({76}, DType::u8);
  const Payload payload{-1, sum.raw(), sum.bytes()};
  EXPECT_EQ(error_of([&] {
              rig.compressor(0).decode(rig.context(), rig.unit(0), info_of(0), 0, {&payload, 1});
            }),
            concat(GetParam(), ": the sum has 76 bytes, expected 80"));
}

TEST_P(LowRankMethod, WorksOnALateStream) {
  const auto run = [&](bool late) {
    ReplicaOptions options;
    options.shapes = {{40, 3, 5}, {64, 8}, {33}};
    options.late_compute = options.late_comm = late;
    options.methods = [this] {
      std::vector<Method> methods;
      methods.push_back({GetParam(), make_method(GetParam(), "compression.rank = 2"), {}});
      return methods;
    };
    options.method_of = [](const Segment& s) { return s.shape.rank() > 1 ? 0 : kDense; };
    return run_replicas(2, options, 6);
  };
  EXPECT_EQ(run(true), run(false));
}

// ---------------------------------------------------------------- dense units

TEST_P(LowRankMethod, StaysDenseUntilItStarts) {
  ReplicaOptions options;
  options.shapes = {{40, 20}, {33}};
  options.methods = [this] {
    std::vector<Method> methods;
    methods.push_back({GetParam(), make_method(GetParam(), "compression.start_after = 3"), {}});
    return methods;
  };
  options.method_of = [](const Segment& s) { return s.shape.rank() > 1 ? 0 : kDense; };
  const Results sums = sums_over_workers(2, options, 6);
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    TestReplica replica(worker.communicator, options);
    for (int64_t step = 0; step < 6; ++step) {
      replica.step(step, small_integers);
      EXPECT_EQ(replica.sync().compressed_units(), step < 3 ? 0 : 1);
      if (step < 3) {
        EXPECT_EQ(replica.gradients(), sums[0][static_cast<size_t>(step)]);
      }
    }
  });
}

TEST(LowRank, RefusesMatricesThatHardlyShrink) {
  const auto refusal = [](const std::string& method, Extents extents, const std::string& toml) {
    return make_method(method, toml)->refusal(matrix_fields({extents})[0]);
  };
  EXPECT_EQ(refusal("powersgd", {64, 27}, ""), "");  // sends 364 of 1728
  EXPECT_EQ(refusal("powersgd", {10, 24}, ""),
            "powersgd would send 136 numbers a step for a matrix of 10 x 24, 1/2 of it or more "
            "(compression.min_rate)");
  EXPECT_EQ(refusal("powersgd", {10, 24}, "compression.min_rate = 1.5"), "");
  EXPECT_NE(refusal("powersgd", {64, 27}, "compression.power_iterations = 3"), "");
  EXPECT_EQ(refusal("acpsgd", {10, 24}, ""), "");  // sends 68 of 240
  EXPECT_NE(refusal("acpsgd", {10, 5}, ""), "");
  EXPECT_NE(refusal("acpsgd", {1, 64}, ""), "") << "a vector";
  EXPECT_EQ(refusal("acpsgd", {1, 64}, "compression.min_rate = 0"), "");
}

TEST_P(LowRankMethod, RefusesWrongOptions) {
  const auto error = [](const std::string& toml) {
    return error_of([&] { make_method(GetParam(), "[compression]\n" + toml); });
  };
  EXPECT_EQ(error("rank = 0"), "test.toml:2: compression.rank is 0, expected more than 0");
  EXPECT_EQ(error("start_after = -1"),
            "test.toml:2: compression.start_after is -1, expected 0 or more");
  EXPECT_EQ(error("min_rate = -1.0"),
            "test.toml:2: compression.min_rate is -1, expected 0 or more");
  EXPECT_EQ(error("values = \"f8\""),
            "test.toml:2: compression.values is 'f8', expected f32, f16 or bf16");
  EXPECT_EQ(error("values = \"natural\""),
            "test.toml:2: values are summed on the wire, and a sum of natural values is not a "
            "natural value; use f32, f16 or bf16");
  EXPECT_EQ(error("feedback = \"ef21\""),
            concat("test.toml:2: ", GetParam(),
                   " has a residual of its own; compression.feedback can be auto, ef or none"));
  EXPECT_EQ(make_method(GetParam(), "")->traits().scopes, std::vector<Scope>{Scope::layer});
}

}  // namespace
}  // namespace wisp
