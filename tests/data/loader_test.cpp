#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/random_images.h"

namespace wisp {
namespace {

struct Copy {
  int64_t index = 0;
  std::vector<float> input;
  std::vector<int32_t> labels;
  std::vector<int64_t> samples;

  bool operator==(const Copy& other) const {
    return index == other.index && input == other.input && labels == other.labels &&
           samples == other.samples;
  }
};

template <class T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.numel()};
}

std::vector<Copy> rest_of_epoch(Loader& loader) {
  std::vector<Copy> batches;
  while (const auto batch = loader.next())
    batches.push_back({batch->index, values<float>(batch->input), values<int32_t>(batch->labels),
                       values<int64_t>(batch->samples)});
  return batches;
}

std::vector<Copy> epoch_of(const Dataset& set, const LoaderOptions& options, int64_t epoch = 0) {
  Loader loader(set, options);
  loader.start_epoch(epoch);
  return rest_of_epoch(loader);
}

std::vector<int64_t> samples_of(const std::vector<Copy>& batches) {
  std::vector<int64_t> samples;
  for (const Copy& batch : batches)
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
  return samples;
}

std::vector<int64_t> counted(int64_t n) {
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Loader, EpochIsAPermutationKeyedBySeedAndEpoch) {
  const Dataset set = random_images({40, 2, 2, 3});
  const LoaderOptions options{.batch = 8, .seed = 5};
  const std::vector<int64_t> order = samples_of(epoch_of(set, options));
  EXPECT_EQ(order, samples_of(epoch_of(set, options)));
  EXPECT_NE(order, counted(40));
  EXPECT_NE(order, samples_of(epoch_of(set, options, 1)));
  EXPECT_NE(order, samples_of(epoch_of(set, {.batch = 8, .seed = 6})));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, counted(40));
}

TEST(Loader, EverySampleGoesToEveryPlace) {
  const Dataset set = random_images({6, 1, 1, 1});
  Loader loader(set, {.batch = 6, .threads = 0});
  constexpr int kEpochs = 3600;
  int seen[6][6] = {};
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    loader.start_epoch(epoch);
    const std::vector<int64_t> order = samples_of(rest_of_epoch(loader));
    for (size_t place = 0; place < 6; ++place) ++seen[place][order[place]];
  }
  for (const auto& place : seen) {  // 600 ± 22 each; 5 deviations
    for (const int count : place) EXPECT_NEAR(count, kEpochs / 6, 110);
  }
}

TEST(Loader, WithoutShuffleTheOrderIsTheDataSets) {
  const Dataset set = random_images({12, 2, 2, 3});
  EXPECT_EQ(samples_of(epoch_of(set, {.batch = 4, .shuffle = false}, 3)), counted(12));
}

TEST(Loader, RowsAreTheirSamples) {
  const Dataset set = random_images({12, 3, 5, 3}, 4);
  const LoaderOptions options{.batch = 4, .seed = 9};
  const Normalizer normalizer(set, DType::f32);
  for (const Copy& batch : epoch_of(set, options, 2)) {
    for (size_t i = 0; i < 4; ++i) {
      const int64_t sample = batch.samples[i];
      EXPECT_EQ(batch.labels[i], sample % 4);
      std::vector<float> image(45);
      normalizer.write(sample, random_window(9, 2, sample, 4),
                       reinterpret_cast<std::byte*>(image.data()));
      EXPECT_TRUE(
          std::equal(image.begin(), image.end(), batch.input.begin() + static_cast<int>(i) * 45));
    }
  }
}

TEST(Loader, InputIsInTheComputeType) {
  const Dataset set = random_images({4, 2, 3, 3});
  Loader loader(set, {.batch = 2, .compute = DType::f64, .shuffle = false, .augment = false});
  loader.start_epoch(0);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->input.shape(), (Shape{2, 2, 3, 3}));
  EXPECT_EQ(batch->input.data<double>()[0], (set.images.data<uint8_t>()[0] - 120.0) / 60.0);
}

TEST(Loader, WorkersTogetherTakeOneWorkersBatch) {
  const Dataset set = random_images({50, 3, 3, 3});  // 4 steps of 12; 2 samples are left out
  const std::vector<Copy> whole = epoch_of(set, {.batch = 12, .seed = 2}, 7);
  ASSERT_EQ(whole.size(), 4u);
  std::vector<Copy> joined(whole.size());
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<Copy> part =
        epoch_of(set, {.batch = 4, .workers = 3, .rank = rank, .seed = 2}, 7);
    ASSERT_EQ(part.size(), whole.size());
    for (size_t t = 0; t < part.size(); ++t) {
      Copy& to = joined[t];
      to.index = part[t].index;
      to.input.insert(to.input.end(), part[t].input.begin(), part[t].input.end());
      to.labels.insert(to.labels.end(), part[t].labels.begin(), part[t].labels.end());
      to.samples.insert(to.samples.end(), part[t].samples.begin(), part[t].samples.end());
    }
  }
  EXPECT_EQ(joined, whole);
}

TEST(Loader, EvaluationCoversEverySampleOnce) {
  for (const int64_t count : {3, 8, 12, 13, 17, 23, 24}) {
    const Dataset set = random_images({count, 1, 1, 3});
    std::vector<int64_t> samples;
    for (int rank = 0; rank < 3; ++rank) {
      const LoaderOptions options{.batch = 4,
                                  .workers = 3,
                                  .rank = rank,
                                  .shuffle = false,
                                  .drop_last = false,
                                  .augment = false};
      Loader loader(set, options);
      loader.start_epoch(0);
      const std::vector<Copy> batches = rest_of_epoch(loader);
      EXPECT_EQ(std::ssize(batches), loader.batches());
      for (const Copy& batch : batches) EXPECT_EQ(batch.input.size(), 3 * batch.samples.size());
      const std::vector<int64_t> part = samples_of(batches);
      samples.insert(samples.end(), part.begin(), part.end());
    }
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, counted(count)) << count;
  }
}

TEST(Loader, BatchesDoNotDependOnThreadsAndPrefetch) {
  const Dataset set = random_images({70, 4, 4, 3});
  LoaderOptions options{.batch = 4, .workers = 2, .rank = 1, .seed = 3};
  options.threads = 0;
  const std::vector<Copy> expected = epoch_of(set, options, 5);
  EXPECT_EQ(expected.size(), 8u);
  for (const int threads : {1, 2, 3}) {
    for (const int64_t prefetch : {0, 1, 2, 20}) {
      options.threads = threads;
      options.prefetch = prefetch;
      EXPECT_EQ(epoch_of(set, options, 5), expected) << threads << " threads, " << prefetch;
    }
  }
}

TEST(Loader, StartsInTheMiddleOfAnEpoch) {
  const Dataset set = random_images({40, 2, 2, 3});
  const LoaderOptions options{.batch = 4, .threads = 2, .prefetch = 3};
  std::vector<Copy> expected = epoch_of(set, options, 1);
  expected.erase(expected.begin(), expected.begin() + 6);

  Loader loader(set, options);
  loader.start_epoch(0);  // given up with batches under way
  loader.next();
  loader.start_epoch(1, 6);
  EXPECT_EQ(rest_of_epoch(loader), expected);
  loader.start_epoch(1, 10);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

TEST(Loader, BuffersAreReused) {
  const Dataset set = random_images({80, 2, 2, 3});
  Loader loader(set, {.batch = 4, .threads = 2, .prefetch = 3});
  std::set<const std::byte*> buffers;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) buffers.insert(batch->input.raw());
  }
  EXPECT_EQ(buffers.size(), 4u);  // one with the caller, three ahead
}

TEST(Loader, ErrorOfALoaderThreadReachesNext) {
  Dataset set = random_images({16, 2, 2, 3});
  set.labels.data<int32_t>()[9] = 10;
  for (const int threads : {0, 1, 2}) {
    Loader loader(set, {.batch = 4, .shuffle = false, .threads = threads});
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      EXPECT_TRUE(loader.next());
      EXPECT_TRUE(loader.next());
      for (int again = 0; again < 2; ++again)
        EXPECT_EQ(error_of([&] { loader.next(); }),
                  "loader: random images: label 10 of sample 9, expected 0 to 9");
    }
  }
}

TEST(Loader, BadOptionsAreRefused) {
  const Dataset set = random_images({10, 2, 2, 3});
  const auto refusal = [&](const LoaderOptions& options) {
    return error_of([&] { Loader(set, options); });
  };
  EXPECT_EQ(refusal({.batch = 1, .workers = 11}),
            "loader: 11 workers for 10 samples, expected at most one worker per sample");
  EXPECT_EQ(
      refusal({.batch = 4, .workers = 3}),
      "loader: 3 workers with batches of 4 need 12 samples for one step, the data set has 10");
  EXPECT_EQ(refusal({.batch = 4, .workers = 3, .drop_last = false}), "no error");
  EXPECT_EQ(refusal({.batch = 0}), "loader: batch 0 and 1 workers, expected at least 1 each");
  EXPECT_EQ(refusal({.batch = 1, .workers = 2, .rank = 2}), "loader: rank 2 of 2 workers");
  EXPECT_EQ(refusal({.batch = 1, .threads = -1}),
            "loader: -1 threads and prefetch 2, expected 0 or more");
}

TEST(Loader, BadStartsAreRefused) {
  const Dataset set = random_images({10, 2, 2, 3});
  Loader loader(set, {.batch = 5});
  EXPECT_EQ(error_of([&] { loader.next(); }), "loader: next() before start_epoch()");
  EXPECT_EQ(error_of([&] { loader.start_epoch(-1); }), "loader: epoch -1, expected 0 or more");
  EXPECT_EQ(error_of([&] { loader.start_epoch(0, 3); }), "loader: first batch 3 of an epoch of 2");
}

}  // namespace
}  // namespace wisp
