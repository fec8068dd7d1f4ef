#include "distributed/averaging/gradient_squares.h"

#include <gtest/gtest.h>

#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

/// Squares and gradients of rank 0 when it encodes, element after element.
struct Seen {
  std::vector<float> squares, gradient;
};

ReplicaOptions watched(Seen& seen, bool squares = true) {
  ReplicaOptions options = all_by([&seen, squares] {
    const auto watch = [&seen, squares](const char* phase, const Unit& unit, const StepInfo& info,
                                        int round) {
      if (info.rank > 0 || std::string(phase) != "encode" || round > 0) return;
      for (const Field& field : unit.spec.fields) {
        const float* gradient = unit.gradient.data<float>() + field.slices[0].offset;
        seen.gradient.insert(seen.gradient.end(), gradient, gradient + field.numel);
        if (!squares) continue;
        const float* square = unit.square.data<float>() + field.slices[0].offset;
        seen.squares.insert(seen.squares.end(), square, square + field.numel);
      }
    };
    return toy_with_traits(toy_hooked(toy_owners(), watch), {.squares = squares});
  });
  options.averaging.buckets.bucket_bytes = 0;
  options.averaging.overlap = false;  // units are encoded in the order of the arena
  return options;
}

/// Runs a step. Micro-batch j adds value(j, i) to the gradient of element i.
void accumulate(TestReplica& replica, int64_t step, int micro_batches,
                const std::function<float(int, int64_t)>& value) {
  const Tensor loss({1}, DType::f32);
  replica.sync().begin({step, 0.0, 0.1});
  for (int j = 0; j < micro_batches; ++j) {
    const bool last = j + 1 == micro_batches;
    if (last) replica.sync().forward_done(loss);
    for (const Segment& segment : replica.parameters().segments()) {
      float* gradient = replica.parameters().grad().data<float>() + segment.offset;
      for (int64_t i = 0; i < segment.numel; ++i)
        gradient[i] = (j > 0 ? gradient[i] : 0.0f) + value(j, segment.offset + i);
      if (last) replica.parameters().ready(segment.id);
    }
    if (!last) replica.sync().micro_batch_done();
  }
  replica.sync().before_update();
}

float integer(int j, int64_t i) { return static_cast<float>((i * 7 + 3 * j) % 11) - 5.0f; }

TEST(GradientSquares, AreTheSumOverMicroBatches) {
  for (const int micro_batches : {1, 2, 4}) {
    Seen seen;
    const ReplicaOptions options = watched(seen);
    run_workers(2, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      for (int64_t step = 0; step < 2; ++step) {  // the second step must start from zero squares
        if (worker.rank == 0) seen = {};
        accumulate(replica, step, micro_batches, integer);
      }
      if (worker.rank > 0) return;
      size_t at = 0;
      for (const Segment& segment : replica.parameters().segments()) {
        for (int64_t i = segment.offset; i < segment.offset + segment.numel; ++i, ++at) {
          float sum = 0.0f, squares = 0.0f;
          for (int j = 0; j < micro_batches; ++j) {
            sum += integer(j, i);
            squares += integer(j, i) * integer(j, i);
          }
          ASSERT_EQ(seen.gradient[at], sum);  // small integers are exact
          ASSERT_EQ(seen.squares[at], squares) << micro_batches << " " << i;
        }
      }
      EXPECT_EQ(at, seen.squares.size());
    });
  }
}

TEST(GradientSquares, ChangeNoBitOfTheGradient) {
  const auto rough = [](int j, int64_t i) {
    return integer(j, i) * 0.1f / static_cast<float>(1 + j);
  };
  std::vector<std::vector<float>> results;
  for (const bool squares : {false, true}) {
    Seen seen;
    const ReplicaOptions options = watched(seen, squares);
    run_workers(1, {.threads = 1}, [&](Worker& worker) {
      TestReplica replica(worker.communicator, options);
      accumulate(replica, 0, 3, rough);
      const auto names = replica.parameters().state_names();
      EXPECT_EQ(std::count(names.begin(), names.end(), "square"), squares ? 1 : 0);
    });
    results.push_back(seen.gradient);
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace wisp
