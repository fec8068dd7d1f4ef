// Tests of training by several workers: N workers with B rows each compute the same as one worker
// with N·B rows, and scheduling changes no bit.
#include "distributed/averaging/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compression/methods/methods.h"
#include "core/copy.h"
#include "core/train/adamw.h"
#include "core/train/sgd.h"
#include "data/loader.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/random_images.h"
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

TEST(DataParallel, ALoopOfOnesOwnLearnsWhatTheWiredOneLearns) {
  const Training training{.workers = 3, .dtype = DType::f32};
  const std::vector<double> expected = train(training);
  for (const bool turns : {false, true}) {
    run_workers(3, {.threads = 1, .turns = turns}, [&](Worker& worker) {
      MemoryPool pool;
      Mlp model({.hidden = {16, 8}}, {.inputs = {{"input", {2, 2, 3}}}, .classes = 5});
      DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                            recipe_of(SgdOptions{.momentum = 0.9, .weight_decay = 1e-3}));
      for (int64_t step = 0; step < kTrainSteps; ++step) {
        EXPECT_EQ(parallel.context().step, step);
        const Batch batch = batch_of(step, worker.rank, training);
        parallel.step(model.forward(parallel.context(), batch, {}).loss, 0.1);
      }
      const std::vector<double> weights = values(parallel.parameters().weight());
      // products of another backend
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(weights[i], expected[i], 1e-5) << i;
    });
  }
}

/// The weights after some steps of workers that share a pool of `device`.
std::vector<double> learned_on(Device device) {
  std::vector<double> weights;
  MemoryPool pool(device);
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    Mlp model({.hidden = {16, 8}}, {.inputs = {{"input", {2, 2, 3}}}, .classes = 5});
    DataParallelOptions options{.method = {"fp16", with_feedback("fp16", make_fp16(), {})}};
    DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                          recipe_of(SgdOptions{}), std::move(options));
    Context& context = parallel.context();
    const auto upload = [&](const Tensor& host) {
      const Tensor x = context.empty(host.shape(), host.dtype());
      copy_now(context.stream, host, x);
      return x;
    };
    for (int64_t step = 0; step < kTrainSteps; ++step) {
      Batch batch = batch_of(step, worker.rank, {.workers = 2, .dtype = DType::f32});
      for (Tensor* x : {&batch.inputs[0], &batch.targets}) *x = upload(*x);
      parallel.step(model.forward(context, batch, {}).loss, 0.1);
    }
    const Tensor found = fetch(context.stream, parallel.parameters().weight());
    if (worker.rank == 0) weights = values(found);
  });
  return weights;
}

TEST_F(DeviceTest, ALoopOfOnesOwnLearnsOnADeviceToo) {
  const std::vector<double> expected = learned_on({}), found = learned_on(first_device());
  ASSERT_EQ(found.size(), expected.size());
  // products of other libraries, and gradients of 11 bits
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
}

/// Model, data, method and optimizer come from option structs.
TEST(DataParallel, TrainsWithoutAConfiguration) {
  std::vector<std::vector<double>> weights(2);
  std::vector<double> first;
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    MemoryPool pool;
    ResNet model({.blocks = {1, 1}, .width = 4, .large_stem = false},
                 {.inputs = {{"input", {8, 8, 3}}}, .classes = 10});
    const ImageExamples images(random_images({32, 8, 8, 3}), random_normalization(), DType::f32,
                               true);
    Loader loader(images, {.batch = 16, .workers = 2, .rank = worker.rank});
    DataParallelOptions options{
        .method = {"dgc", make_dgc({.local = {.momentum = 0.9, .weight_decay = 1e-4}})}};
    options.averaging.ratio = [](double epoch) { return epoch < 1.0 ? 1.0 : 0.01; };
    DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                          recipe_of(SgdOptions{.momentum = 0.9, .weight_decay = 1e-4}),
                          std::move(options));
    if (worker.rank == 0) first = values(parallel.parameters().weight());
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch);
      while (const auto batch = loader.next()) {
        const Variable loss = model.forward(parallel.context(), *batch, {}).loss;
        EXPECT_EQ(parallel.step(loss, 0.1, static_cast<double>(epoch)), Outcome::applied);
        EXPECT_TRUE(std::isfinite(*loss.value().data<float>()));
      }
    }
    EXPECT_LT(parallel.cost().bytes_sent, parallel.cost().bytes_dense);
    weights[static_cast<size_t>(worker.rank)] = values(parallel.parameters().weight());
  });
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_NE(weights[0], first);
}

TEST(DataParallel, ALossThatIsNotFiniteChangesNothing) {
  run_workers(2, {.threads = 1}, [&](Worker& worker) {
    MemoryPool pool;
    ResNet model({.blocks = {1}, .width = 4, .large_stem = false},
                 {.inputs = {{"input", {4, 4, 3}}}, .classes = 5});
    DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                          recipe_of(SgdOptions{}));
    Batch batch;
    batch.inputs = {random_tensor({2, 4, 4, 3}, 1, DType::f32)};
    batch.targets = Tensor({2}, DType::i32);
    const auto step = [&] {
      return parallel.step(model.forward(parallel.context(), batch, {}).loss, 0.1);
    };
    EXPECT_EQ(step(), Outcome::applied);
    const std::vector<double> weights = values(parallel.parameters().weight());
    const std::vector<double> buffers = values(parallel.parameters().buffer_arena());
    if (worker.rank == 1) batch.targets.data<int32_t>()[0] = 1000;  // not a class, so NaN
    EXPECT_EQ(step(), Outcome::skipped);
    EXPECT_EQ(values(parallel.parameters().weight()), weights);
    EXPECT_EQ(values(parallel.parameters().buffer_arena()), buffers);
    EXPECT_NE(error_of([&] { parallel.step({}, 0.1); }), "no error");
  });
}

/// Its exchange would wait for gradients for ever, and take those of the next step.
TEST(DataParallel, AStepAfterOneThatFailedIsRefused) {
  run_workers(1, {.threads = 1}, [&](Worker& worker) {
    MemoryPool pool;
    Mlp model({.hidden = {16, 8}}, {.inputs = {{"input", {2, 2, 3}}}, .classes = 5});
    DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                          recipe_of(SgdOptions{}));
    Batch batch;
    batch.inputs = {random_tensor({2, 2, 2, 3}, 1, DType::f32)};
    batch.targets = Tensor({2}, DType::i32);
    const Variable loss = model.forward(parallel.context(), batch, {}).loss;
    EXPECT_EQ(parallel.step(loss, 0.1), Outcome::applied);
    const std::string walked = error_of([&] { parallel.step(loss, 0.1); });
    EXPECT_NE(walked.find("was walked already"), std::string::npos) << walked;
    const Variable next = model.forward(parallel.context(), batch, {}).loss;
    EXPECT_EQ(error_of([&] { parallel.step(next, 0.1); }),
              "step 1: the exchange of step 1 has not ended, because that step failed; go on from "
              "a checkpoint, with new objects");
  });
}

TEST(DataParallel, ASkippedStepKeepsBuffersThatWereLoaded) {
  run_workers(1, {.threads = 1}, [&](Worker& worker) {
    MemoryPool pool;
    ResNet model({.blocks = {1}, .width = 4, .large_stem = false},
                 {.inputs = {{"input", {4, 4, 3}}}, .classes = 5});
    DataParallel parallel(worker, pool, model.parameters(), model.buffers(),
                          recipe_of(SgdOptions{}));
    const Tensor& buffers = parallel.parameters().buffer_arena();
    std::fill_n(buffers.data<float>(), buffers.numel(), 3.0f);
    parallel.keep_buffers();
    Batch batch;
    batch.inputs = {random_tensor({2, 4, 4, 3}, 1, DType::f32)};
    batch.targets = Tensor({2}, DType::i32);
    batch.targets.data<int32_t>()[0] = 1000;  // not a class, so NaN
    EXPECT_EQ(parallel.step(model.forward(parallel.context(), batch, {}).loss, 0.1),
              Outcome::skipped);
    EXPECT_EQ(values(buffers), std::vector<double>(static_cast<size_t>(buffers.numel()), 3.0));
  });
}

/// The error of a worker that trains with this method and optimizer.
std::string refusal_of(Method method, const OptimizerRecipe& optimizer) {
  std::string error;
  run_workers(1, {.threads = 1}, [&](Worker& worker) {
    MemoryPool pool;
    Mlp model({.hidden = {16, 8}}, {.inputs = {{"input", {2, 2, 3}}}, .classes = 5});
    error = error_of([&] {
      DataParallel(worker, pool, model.parameters(), model.buffers(), optimizer,
                   {.method = std::move(method)});
    });
  });
  return error;
}

TEST(DataParallel, RefusesAMethodThatDoesNotFitItsScopeOrTheOptimizer) {
  const OptimizerRecipe sgd = recipe_of(SgdOptions{}), adamw = recipe_of(AdamWOptions{});
  EXPECT_EQ(refusal_of({"onebit", make_onebit()}, sgd), "no error");
  EXPECT_EQ(refusal_of({"onebit", make_onebit(), Scope::bucket}, sgd),
            "DataParallel: method onebit does not know its scope; Traits::scopes has those that "
            "it knows");
  const std::string rules = " leaves (Traits::result); OptimizerRecipe::rules has what it can use";
  EXPECT_EQ(refusal_of({"dgc", make_dgc()}, adamw),
            "DataParallel: the optimizer cannot use what method dgc" + rules);
  EXPECT_EQ(refusal_of({"onebit_adam", make_onebit_adam()}, sgd),
            "DataParallel: the optimizer cannot use what method onebit_adam" + rules);
  EXPECT_EQ(refusal_of({"onebit_adam", make_onebit_adam()}, adamw), "no error");
}

}  // namespace
}  // namespace wisp
