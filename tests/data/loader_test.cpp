#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

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
    batches.push_back({batch->index, values<float>(batch->inputs[0]),
                       values<int32_t>(batch->targets), values<int64_t>(batch->samples)});
  return batches;
}

std::vector<Copy> epoch_of(const Examples& set, const Deal& deal, int64_t epoch = 0,
                           const LoaderOptions& options = {}) {
  Loader loader(set, deal, options);
  loader.start_epoch(epoch);
  return rest_of_epoch(loader);
}

/// Random images, augmented by default.
struct Images : ImageExamples {
  explicit Images(Shape shape, int classes = 10, bool augment = true)
      : ImageExamples(random_images(shape, classes), random_normalization(shape[3]), DType::f32,
                      augment) {}
};

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

TEST(Loader, CutsAnEpochOnceAndTheNextAtItsEnd) {
  struct Counted final : Images {
    using Images::Images;
    std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
      cuts.push_back(epoch);
      return Images::epoch(epoch, deal);
    }
    mutable std::vector<int64_t> cuts;
  };
  const Counted set({16, 1, 1, 1});
  const Deal deal{.batch = 4};
  Loader loader(set, deal);
  for (const int64_t epoch : {0, 1, 1, 0}) {
    loader.start_epoch(epoch);
    EXPECT_EQ(rest_of_epoch(loader), epoch_of(Images({16, 1, 1, 1}), deal, epoch));
  }
  EXPECT_EQ(set.cuts, (std::vector<int64_t>{0, 1, 2, 2, 0, 1}));
}

TEST(Loader, EpochIsAPermutationKeyedBySeedAndEpoch) {
  const Images set({40, 2, 2, 3});
  const Deal deal{.batch = 8, .seed = 5};
  const std::vector<int64_t> order = samples_of(epoch_of(set, deal));
  EXPECT_EQ(order, samples_of(epoch_of(set, deal)));
  EXPECT_NE(order, counted(40));
  EXPECT_NE(order, samples_of(epoch_of(set, deal, 1)));
  EXPECT_NE(order, samples_of(epoch_of(set, {.batch = 8, .seed = 6})));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, counted(40));
}

TEST(Loader, EverySampleGoesToEveryPlace) {
  const Images set({6, 1, 1, 1});
  Loader loader(set, {.batch = 6}, {.threads = 0});
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

TEST(Loader, WithoutTrainingTheOrderIsTheDataSets) {
  const Images set({12, 2, 2, 3});
  EXPECT_EQ(samples_of(epoch_of(set, {.batch = 4, .training = false}, 3)), counted(12));
}

TEST(Loader, RowsAreTheirSamples) {
  const ImageSet images = random_images({12, 3, 5, 3}, 4);
  const Normalizer normalizer(random_normalization(), DType::f32);
  for (const Copy& batch : epoch_of(Images({12, 3, 5, 3}, 4), {.batch = 4, .seed = 9}, 2)) {
    for (size_t i = 0; i < 4; ++i) {
      const int64_t sample = batch.samples[i];
      EXPECT_EQ(batch.labels[i], sample % 4);
      std::vector<float> image(45);
      normalizer.write(images.image(sample), random_window({9, 2, sample}, 4),
                       reinterpret_cast<std::byte*>(image.data()));
      EXPECT_TRUE(
          std::equal(image.begin(), image.end(), batch.input.begin() + static_cast<int>(i) * 45));
    }
  }
}

TEST(Loader, InputIsInTheComputeType) {
  const ImageSet images = random_images({4, 2, 3, 3});
  const ImageExamples set(images, random_normalization(), DType::f64, false);
  Loader loader(set, {.batch = 2, .training = false});
  loader.start_epoch(0);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->inputs[0].shape(), (Shape{2, 2, 3, 3}));
  EXPECT_EQ(batch->inputs[0].data<double>()[0], (images.images.data<uint8_t>()[0] - 120.0) / 60.0);
}

TEST(Loader, ABatchKnowsItsShareOfTheStep) {
  const Images set({60, 1, 1, 3});
  Loader loader(set, {.batch = 24, .workers = 3, .rank = 1, .accumulate = 2});
  loader.start_epoch(0);
  EXPECT_EQ(loader.batches(), 4);
  while (const auto batch = loader.next()) {
    EXPECT_EQ(batch->count, 4);
    EXPECT_EQ(batch->of_worker, 8);
    EXPECT_EQ(batch->of_step, 24);
    EXPECT_EQ(batch->work, 4);
  }
}

TEST(Loader, WorkersTogetherTakeOneWorkersBatch) {
  const Images set({50, 3, 3, 3});  // 4 steps of 12; 2 samples are left out
  const std::vector<Copy> whole = epoch_of(set, {.batch = 12, .seed = 2}, 7);
  ASSERT_EQ(whole.size(), 4u);
  std::vector<Copy> joined(whole.size());
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<Copy> part =
        epoch_of(set, {.batch = 12, .workers = 3, .rank = rank, .seed = 2}, 7);
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
    const Images set({count, 1, 1, 3});
    std::vector<int64_t> samples;
    for (int rank = 0; rank < 3; ++rank) {
      Loader loader(set, {.batch = 12, .workers = 3, .rank = rank, .training = false});
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
  const Images set({70, 4, 4, 3});
  const Deal deal{.batch = 8, .workers = 2, .rank = 1, .seed = 3};
  const std::vector<Copy> expected = epoch_of(set, deal, 5, {.threads = 0});
  EXPECT_EQ(expected.size(), 8u);
  for (const int threads : {1, 2, 3}) {
    for (const int64_t prefetch : {0, 1, 2, 20}) {
      EXPECT_EQ(epoch_of(set, deal, 5, {.threads = threads, .prefetch = prefetch}), expected)
          << threads << " threads, " << prefetch;
    }
  }
}

TEST(Loader, ThreadsShareABatch) {
  /// Each row waits until another thread fills one, too.
  struct Shared final : Images {
    using Images::Images;
    std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override {
      std::unique_lock lock(mutex);
      ++inside;
      met.notify_all();
      if (!met.wait_for(lock, std::chrono::seconds(10), [&] { return inside >= 2; }))
        return "no other thread came";
      return Images::fill(piece, row, batch);
    }
    mutable std::mutex mutex;
    mutable std::condition_variable met;
    mutable int inside = 0;
  };
  const Shared set({4, 2, 2, 3});
  Loader loader(set, {.batch = 4}, {.threads = 2, .prefetch = 0});
  loader.start_epoch(0);
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(loader.last_damage(), "");
}

TEST(Loader, GoesOnWithTheNextEpochOfTraining) {
  struct Counted final : Images {
    using Images::Images;
    std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override {
      if (piece.epoch == 1) ++rows;
      return Images::fill(piece, row, batch);
    }
    mutable std::atomic<int> rows = 0;
  };
  const Deal training{.batch = 4};
  const Counted set({12, 2, 2, 3});
  for (const bool goes_on : {true, false}) {
    set.rows = 0;
    Loader loader(set, {.batch = 4, .training = goes_on}, {.threads = 2, .prefetch = 2});
    loader.start_epoch(0);
    rest_of_epoch(loader);
    EXPECT_FALSE(loader.ahead()) << "the epoch has ended";
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(goes_on ? 10 : 0);
    while (set.rows < 8 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    loader.start_epoch(0);
    EXPECT_EQ(set.rows, goes_on ? 8 : 0);
  }
  Loader loader(set, training, {.threads = 2, .prefetch = 2});
  for (const int64_t epoch : {0, 1, 2, 2, 7, 8}) {
    loader.start_epoch(epoch);
    EXPECT_EQ(rest_of_epoch(loader), epoch_of(set, training, epoch)) << epoch;
  }
}

TEST(Loader, TellsTheBatchAhead) {
  const Images set({20, 4, 4, 3});
  Loader loader(set, {.batch = 4}, {.threads = 1, .prefetch = 2});
  EXPECT_FALSE(loader.ahead()) << "no epoch was started";
  for (const int64_t epoch : {0, 1}) {
    loader.start_epoch(epoch);
    for (int64_t i = 0; i < 5; ++i) {
      std::optional<Batch> ahead;
      while (!(ahead = loader.ahead())) std::this_thread::yield();
      const std::optional<Batch> batch = loader.next();
      EXPECT_EQ(ahead->index, i);
      EXPECT_EQ(ahead->epoch, epoch);
      EXPECT_EQ(ahead->samples.raw(), batch->samples.raw());
    }
    EXPECT_FALSE(loader.ahead()) << "the epoch has ended";
  }
  Loader of_the_caller(set, {.batch = 4}, {.threads = 0});
  of_the_caller.start_epoch(0);
  of_the_caller.next();
  EXPECT_FALSE(of_the_caller.ahead());
}

TEST(Loader, StartsInTheMiddleOfAnEpoch) {
  const Images set({40, 2, 2, 3});
  const Deal deal{.batch = 4};
  std::vector<Copy> expected = epoch_of(set, deal, 1);
  expected.erase(expected.begin(), expected.begin() + 6);

  Loader loader(set, deal, {.threads = 2, .prefetch = 3});
  loader.start_epoch(0);  // abandoned with batches in progress
  loader.next();
  loader.start_epoch(1, 6);
  EXPECT_EQ(rest_of_epoch(loader), expected);
  loader.start_epoch(1, 10);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

TEST(Loader, BuffersAreReused) {
  const Images set({80, 2, 2, 3});
  Loader loader(set, {.batch = 4}, {.threads = 2, .prefetch = 3});
  std::set<const std::byte*> buffers;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) buffers.insert(batch->inputs[0].raw());
  }
  EXPECT_EQ(buffers.size(), 4u);  // one with the caller, three ahead
}

/// Images whose sample 9 cannot be read: it throws, or is reported as damaged.
class Unreadable final : public Examples {
 public:
  explicit Unreadable(bool damaged) : damaged_(damaged) {}
  int64_t count() const override { return images_.count(); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override {
    return images_.epoch(epoch, deal);
  }
  void shape(const Piece& piece, Batch& batch) const override { images_.shape(piece, batch); }
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override {
    images_.fill(piece, row, batch);
    if (piece.rows[static_cast<size_t>(row)] != 9) return {};
    WISP_CHECK(damaged_, "sample 9 cannot be read");
    batch.targets.data<int32_t>()[row] = -1;
    return "sample 9 is damaged";
  }

 private:
  const Images images_{{16, 2, 2, 3}};
  const bool damaged_;
};

TEST(Loader, ErrorOfALoaderThreadReachesNext) {
  const Unreadable set(false);
  for (const int threads : {0, 1, 2}) {
    Loader loader(set, {.batch = 4, .training = false}, {.threads = threads});
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      EXPECT_TRUE(loader.next());
      EXPECT_TRUE(loader.next());
      for (int again = 0; again < 2; ++again)
        EXPECT_EQ(error_of([&] { loader.next(); }), "sample 9 cannot be read");
    }
  }
}

TEST(Loader, ADamagedSampleKeepsItsPlace) {
  const Unreadable set(true);
  for (const int threads : {0, 1, 2}) {
    Loader loader(set, {.batch = 4, .training = false}, {.threads = threads});
    loader.start_epoch(0);
    loader.next();
    loader.next();
    EXPECT_EQ(loader.damaged(), 0);
    const auto batch = loader.next();
    EXPECT_EQ(batch->count, 4) << "the divisor stays";
    EXPECT_EQ(values<int64_t>(batch->samples), (std::vector<int64_t>{8, 9, 10, 11}));
    EXPECT_EQ(values<int32_t>(batch->targets), (std::vector<int32_t>{8, -1, 0, 1}));
    EXPECT_EQ(loader.damage(), std::vector<std::string>{"sample 9 is damaged"});
    EXPECT_EQ(batch->ignored, 1);
    EXPECT_EQ(loader.next()->ignored, 0);
    EXPECT_EQ(loader.damaged(), 1);
    EXPECT_EQ(loader.last_damage(), "sample 9 is damaged");
    EXPECT_TRUE(loader.damage().empty());
  }
}

TEST(Loader, TheBatchAheadKnowsWhatItIgnores) {
  const Unreadable set(true);
  Loader loader(set, {.batch = 4, .training = false}, {.threads = 1, .prefetch = 1});
  for (const int64_t epoch : {0, 1}) {  // the second one finds the slots of the first
    loader.start_epoch(epoch);
    for (const int64_t ignored : {0, 0, 1, 0}) {
      std::optional<Batch> ahead;
      while (!(ahead = loader.ahead())) std::this_thread::yield();
      EXPECT_EQ(ahead->ignored, ignored);
      EXPECT_EQ(loader.next()->ignored, ignored);
    }
  }
}

TEST(Loader, BadDealsAreRefused) {
  const Images set({10, 2, 2, 3});
  const auto refusal = [&](const Deal& deal, const LoaderOptions& options = {}) {
    return error_of([&] { Loader(set, deal, options); });
  };
  EXPECT_EQ(refusal({.batch = 11, .workers = 11}),
            "random images: 10 samples for 11 workers, expected at least one each");
  EXPECT_EQ(refusal({.batch = 12, .workers = 3}),
            "random images: 10 samples, expected at least the 12 of one step");
  EXPECT_EQ(refusal({.batch = 12, .workers = 3, .training = false}), "no error");
  EXPECT_EQ(refusal({.batch = 10, .workers = 3}),
            "random images: a batch of 10 is not the same number of samples for 3 workers and 1 "
            "micro-batches");
  EXPECT_EQ(refusal({.batch = 0}),
            "random images: a batch of 0 for 1 workers and 1 micro-batches, expected at least 1 "
            "each");
  EXPECT_EQ(refusal({.batch = 2, .workers = 2, .rank = 2}), "random images: rank 2 of 2 workers");
  EXPECT_EQ(refusal({.batch = 1}, {.threads = -1}),
            "loader: -1 threads and prefetch 2, expected 0 or more");
}

TEST(Loader, BadStartsAreRefused) {
  const Images set({10, 2, 2, 3});
  Loader loader(set, {.batch = 5});
  EXPECT_EQ(error_of([&] { loader.next(); }), "loader: next() before start_epoch()");
  EXPECT_EQ(error_of([&] { loader.start_epoch(-1); }), "loader: epoch -1, expected 0 or more");
  EXPECT_EQ(error_of([&] { loader.start_epoch(0, 3); }), "loader: first batch 3 of an epoch of 2");
}

}  // namespace
}  // namespace wisp
