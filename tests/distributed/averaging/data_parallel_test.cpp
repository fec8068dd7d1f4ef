// Tests of training by several workers: N workers with B rows each compute the same as one worker
// with N·B rows, and scheduling changes no bit.
#include <gtest/gtest.h>

#include "core/train/sgd.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/launch.h"
#include "models/mlp.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

constexpr int64_t kRows = 12;  // rows of a batch, all workers together
constexpr int64_t kTrainSteps = 10;

struct Training {
  int workers = 1;
  DType dtype = DType::f64;
  AveragingOptions averaging = {.buckets = {.bucket_bytes = 256}};
  bool turns = false;
  bool late = false;
  bool compressed = false;
};

/// Rows [rank B, (rank + 1) B) of a step's batch.
Batch batch_of(int64_t step, int rank, const Training& training) {
  const int64_t rows = kRows / training.workers;
  const Tensor all =
      random_tensor({kRows, 2, 2, 3}, static_cast<uint64_t>(step) + 1, training.dtype);
  Batch batch;
  batch.inputs = {all.rows(rank * rows, (rank + 1) * rows)};
  batch.targets = Tensor({rows}, DType::i32);
  batch.samples = sample_ids(rows, rank * rows);
  for (int64_t i = 0; i < rows; ++i)
    batch.targets.data<int32_t>()[i] = static_cast<int32_t>((rank * rows + i + step) % 5);
  return batch;
}

class Trainee {
 public:
  Trainee(const Training& training, Worker& worker)
      : training_(training),
        worker_(worker),
        compute_({.compute = training.dtype, .late = training.late}),
        comm_({.compute = training.dtype, .late = training.late}),
        model_({.hidden = {16, 8}}, {.inputs = {{"input", {2, 2, 3}}}, .classes = 5}),
        parameters_(compute_.context, model_.parameters(), model_.buffers()),
        optimizer_(parameters_, {.momentum = 0.9, .weight_decay = 1e-3}),
        trace_(worker.rank, {}),
        sync_(worker.communicator, compute_.context, comm_.context, parameters_, methods(),
              std::vector<int>(parameters_.segments().size(), training.compressed ? 0 : kDense),
              training.averaging, trace_) {}

  void step(int64_t step) {
    const Batch batch = batch_of(step, worker_.rank, training_);
    sync_.begin({step, 0.0, 0.1});
    const Step result = model_.forward(compute_.context, batch, {});
    sync_.forward_done(result.loss.value());
    backward(result.loss, {.seed = 1.0 / training_.workers});
    worker_.turns.release();
    sync_.before_update();
    worker_.turns.acquire();
    optimizer_.step(compute_.context, 0.1, sync_.updates(), sync_.rules());
    sync_.after_update();
  }
  std::vector<double> weights() {
    compute_.stream.synchronize();
    return values(parameters_.weight());
  }

 private:
  std::vector<Method> methods() const {
    std::vector<Method> methods;
    if (training_.compressed) methods.push_back({"toy", toy_parity(), Scope::layer});
    return methods;
  }

  const Training& training_;
  Worker& worker_;
  TestContext compute_, comm_;
  Mlp model_;
  FlatParameters parameters_;
  Sgd optimizer_;
  Trace trace_;
  GradientAveraging sync_;
};

/// The weights after kTrainSteps steps, which must be equal on all ranks.
std::vector<double> train(const Training& training) {
  std::vector<std::vector<double>> weights(static_cast<size_t>(training.workers));
  run_workers(training.workers, {.threads = 1, .turns = training.turns}, [&](Worker& worker) {
    Trainee trainee(training, worker);
    for (int64_t step = 0; step < kTrainSteps; ++step) trainee.step(step);
    weights[static_cast<size_t>(worker.rank)] = trainee.weights();
  });
  for (const auto& of_rank : weights) EXPECT_EQ(of_rank, weights[0]);
  return weights[0];
}

TEST(DataParallel, WorkersTimesBatchEqualsOneLargeBatch) {
  const std::vector<double> expected = train({.workers = 1});
  for (const int workers : {2, 3, 4}) {
    const std::vector<double> weights = train({.workers = workers});
    // all are f64, and only the order of the sums over rows differs
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(weights[i], expected[i], 1e-12) << i;
  }
}

void expect_same_bits(const Training& training) {
  const std::vector<double> expected = train(training);
  EXPECT_EQ(train(training), expected) << "again";
  Training variant = training;
  variant.averaging.overlap = false;
  EXPECT_EQ(train(variant), expected) << "inline";
  variant.turns = true;
  EXPECT_EQ(train(variant), expected) << "turns";
  variant = training;
  variant.late = true;
  EXPECT_EQ(train(variant), expected) << "late streams";
}

TEST(DataParallel, HasTheSameBitsHoweverItIsRun) {
  expect_same_bits({.workers = 3, .dtype = DType::f32});
}

TEST(DataParallel, HasTheSameBitsHoweverItIsRunWithState) {
  Training training{.workers = 4, .dtype = DType::f32, .compressed = true};
  training.averaging.guard = false;
  expect_same_bits(training);
}

TEST(DataParallel, HasTheSameBitsForAnyBuckets) {
  Training training{.workers = 3, .dtype = DType::f32};
  const std::vector<double> expected = train(training);
  for (const int64_t bytes : {1, 1'000'000}) {
    training.averaging.buckets.bucket_bytes = bytes;
    EXPECT_EQ(train(training), expected) << bytes;
  }
}

}  // namespace
}  // namespace wisp
