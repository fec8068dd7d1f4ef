#include "core/loops/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.h"
#include "tests/core/loops/functors.h"

namespace wisp {
namespace {

/// Sizes around every border: lanes, mask words, chunks, thread grain.
const std::vector<int64_t> kSizes = {0, 1, 15, 17, 63, 64, 65, 4097, 8191, 8192, 8193, 100'003};

std::vector<float> random_floats(int64_t n) {
  const Philox random(1, 2, 3);
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i) - 0.5f;
  return x;
}

/// Runs `body` under each of several thread counts, and restores the count.
template <class Body>
void with_thread_counts(Body body) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3, 4}) {
    omp_set_num_threads(threads);
    body(threads);
  }
  omp_set_num_threads(before);
}

/// Reads `y` only where `x` is not above zero.
template <class T>
struct ConditionalSum {
  using Value = T;
  const T *x, *y;
  WISP_HD T identity() const { return T(0); }
  WISP_HD T map(int64_t i) const { return x[i] > T(0) ? T(0) : x[i] * y[i]; }
  WISP_HD T combine(T a, T b) const { return a + b; }
};

template <class T>
struct ConditionalProduct {
  const T *x, *y;
  T* product;
  WISP_HD void operator()(int64_t i) const { product[i] = x[i] > T(0) ? T(0) : x[i] * y[i]; }
};

/// Selects products above zero, reads `y` only where `x` is not above zero, and counts those
/// visits.
template <class T>
struct ConditionalSelect {
  const T *x, *y;
  T* visits;
  int64_t* index;
  WISP_HD bool operator()(int64_t i) const {
    if (x[i] > T(0)) return false;
    visits[i] += T(1);
    return x[i] * y[i] > T(0);
  }
  WISP_HD void emit(int64_t position, int64_t i) const { index[position] = i; }
};

/// Selects elements above the threshold, and counts how often each is asked.
struct SelectAbove {
  const float* x;
  float threshold;
  int* asked;
  int64_t* index;
  WISP_HD bool operator()(int64_t i) const {
    ++asked[i];
    return x[i] > threshold;
  }
  WISP_HD void emit(int64_t position, int64_t i) const { index[position] = i; }
};

struct SelectSome : SelectAbove {
  int64_t capacity;
};

struct BinOf {
  const float* x;
  WISP_HD int operator()(int64_t i) const { return static_cast<int>((x[i] + 0.5f) * 8) - 1; }
};

struct AddOne {
  int* to;
  WISP_HD void operator()() const { ++*to; }
};

std::vector<uint64_t> select_scratch(int64_t n) {
  return std::vector<uint64_t>(static_cast<size_t>(select_scratch_bytes(n) / 8));
}

/// Runs reduce, for and select with a kernel that reads `y` only where `x` is not above zero. The
/// numbers are integers of both signs, so their sums are exact in any order.
template <class T>
void expect_conditional_reads() {
  const Stream stream = Stream::immediate();
  for (const int64_t n : kSizes) {
    std::vector<T> x, y, expected, expected_visits;
    std::vector<int64_t> expected_index;
    T expected_sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(i * 37 % 19 - 9));
      y.push_back(static_cast<T>(i * 7 % 11 - 5));
      expected.push_back(x.back() <= 0 ? x.back() * y.back() : T(0));
      expected_visits.push_back(x.back() <= 0);
      expected_sum += expected.back();
      if (expected.back() > 0) expected_index.push_back(i);
    }
    T sum = -1;
    parallel_reduce(stream, n, ConditionalSum<T>{x.data(), y.data()}, &sum);
    EXPECT_EQ(sum, expected_sum) << n;

    std::vector<T> product(x.size(), T(7));
    parallel_for(stream, n, ConditionalProduct<T>{x.data(), y.data(), product.data()});
    EXPECT_EQ(product, expected) << n;

    std::vector<T> visits(x.size());
    std::vector<int64_t> index(expected_index.size());
    std::vector<uint64_t> scratch = select_scratch(n);
    int64_t count = 0;
    parallel_select(stream, n,
                    ConditionalSelect<T>{x.data(), y.data(), visits.data(), index.data()}, &count,
                    scratch.data());
    EXPECT_EQ(count, static_cast<int64_t>(index.size())) << n;
    EXPECT_EQ(index, expected_index) << n;
    EXPECT_EQ(visits, expected_visits) << n;
  }
}

TEST(Parallel, KernelsMayReadUnderACondition) {
  expect_conditional_reads<float>();
  expect_conditional_reads<double>();
  expect_conditional_reads<int32_t>();
  expect_conditional_reads<int64_t>();
}

TEST(Parallel, ForVisitsEachIndexOnce) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random_floats(n);
    with_thread_counts([&](int threads) {
      std::vector<float> y(x.size(), 1.0f);
      parallel_for(Stream::immediate(), n, AddSquare{x.data(), y.data()});
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], 1.0f + x[i] * x[i]) << n << ", " << threads << " threads";
    });
  }
}

TEST(Parallel, ForVisitsEachIndexOnceWhateverAnIndexHandles) {
  const std::vector<float> x = random_floats(700);
  for (const int64_t elements : {0, 1, 100, 10'000, 100'000}) {
    with_thread_counts([&](int threads) {
      std::vector<float> y(x.size(), 1.0f);
      parallel_for(Stream::immediate(), 700, AddSquare{x.data(), y.data()}, elements);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], 1.0f + x[i] * x[i]) << elements << ", " << threads << " threads";
    });
  }
}

TEST(Parallel, CountedForStopsAtTheDeviceCountAndAtCapacity) {
  const std::vector<float> x(100, 1.0f);
  std::vector<float> y(100, 0.0f);
  const int64_t few = 30;
  parallel_for_counted(Stream::immediate(), &few, 100, AddSquare{x.data(), y.data()});
  EXPECT_EQ(std::accumulate(y.begin(), y.end(), 0.0f), 30.0f);
  const int64_t many = 1000;
  parallel_for_counted(Stream::immediate(), &many, 50, AddSquare{x.data(), y.data()});
  EXPECT_EQ(std::accumulate(y.begin(), y.end(), 0.0f), 80.0f);
}

TEST(Parallel, ReduceIsTheSameBitsForAnyThreadCount) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random_floats(n);
    float first = 0;
    parallel_reduce(Stream::immediate(), n, SumOfFloats{x.data()}, &first);
    with_thread_counts([&](int threads) {
      float sum = -1;
      parallel_reduce(Stream::immediate(), n, SumOfFloats{x.data()}, &sum);
      EXPECT_EQ(float_bits(sum), float_bits(first)) << n << ", " << threads << " threads";
    });
    const double exact = std::accumulate(x.begin(), x.end(), 0.0);
    // a tree of depth about 20 over values below 1/2
    EXPECT_NEAR(first, exact, 20 * 6e-8 * std::sqrt(static_cast<double>(n)) + 1e-7) << n;
  }
}

TEST(Parallel, SelectEqualsAScalarLoop) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random_floats(n);
    for (const float threshold : {-1.0f, 0.0f, 0.45f, 1.0f}) {
      std::vector<int64_t> expected{-1, -1, -1};  // positions continue at the given count
      for (int64_t i = 0; i < n; ++i) {
        if (x[static_cast<size_t>(i)] > threshold) expected.push_back(i);
      }
      with_thread_counts([&](int threads) {
        std::vector<int64_t> index(expected.size(), -1);
        std::vector<int> asked(x.size());
        std::vector<uint64_t> scratch = select_scratch(n);
        int64_t count = 3;
        parallel_select(Stream::immediate(), n,
                        SelectAbove{x.data(), threshold, asked.data(), index.data()}, &count,
                        scratch.data());
        EXPECT_EQ(count, static_cast<int64_t>(expected.size()));
        EXPECT_EQ(index, expected) << n << ", " << threads << " threads";
        EXPECT_EQ(asked, std::vector<int>(x.size(), 1));
      });
    }
  }
}

TEST(Parallel, SelectEmitsWithinTheCapacityAndCountsOn) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x(static_cast<size_t>(n), 1.0f);
    for (const int64_t capacity : {int64_t{0}, n / 3, n, n + 5}) {
      with_thread_counts([&](int threads) {
        std::vector<int64_t> index(x.size() + 1, -1);
        std::vector<int> asked(x.size());
        std::vector<uint64_t> scratch = select_scratch(n);
        int64_t count = 1;
        parallel_select(Stream::immediate(), n,
                        SelectSome{{x.data(), 0.0f, asked.data(), index.data()}, capacity}, &count,
                        scratch.data());
        EXPECT_EQ(count, 1 + n);
        for (int64_t at = 0; at <= n; ++at)
          EXPECT_EQ(index[static_cast<size_t>(at)], 1 <= at && at < capacity ? at - 1 : -1)
              << n << ", " << threads << " threads";
      });
    }
  }
}

TEST(Parallel, CountedSelectStopsAtTheDeviceCount) {
  const int64_t capacity = 200;
  const int64_t n = 77;
  const std::vector<float> x(capacity, 1.0f);
  std::vector<int64_t> index(capacity, -1);
  std::vector<int> asked(capacity);
  std::vector<uint64_t> scratch = select_scratch(capacity);
  int64_t count = 0;
  parallel_select_counted(Stream::immediate(), &n, capacity,
                          SelectAbove{x.data(), 0.0f, asked.data(), index.data()}, &count,
                          scratch.data());
  EXPECT_EQ(count, n);
  EXPECT_EQ(index[76], 76);
  EXPECT_EQ(index[77], -1);
}

TEST(Parallel, HistogramIsExact) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random_floats(n);
    std::vector<uint32_t> expected(7);
    for (const float value : x) {
      const int bin = static_cast<int>((value + 0.5f) * 8) - 1;
      if (bin >= 0) ++expected[static_cast<size_t>(bin)];
    }
    std::vector<uint32_t> bins(7, 99);  // the call clears them
    parallel_histogram(Stream::immediate(), n, BinOf{x.data()}, bins.data(), 7);
    EXPECT_EQ(bins, expected) << n;
    const int64_t half = n / 2;
    std::vector<uint32_t> counted(7);
    parallel_histogram_counted(Stream::immediate(), &half, n, BinOf{x.data()}, counted.data(), 7);
    parallel_histogram(Stream::immediate(), half, BinOf{x.data()}, bins.data(), 7);
    EXPECT_EQ(counted, bins) << n;
  }
}

TEST(Parallel, LateStreamRunsTheSameLoops) {
  const int64_t n = 100'003;
  const std::vector<float> x = random_floats(n);
  const Stream late = Stream::late(2);
  float now = 0;
  float later = 0;
  int once = 0;
  parallel_reduce(late, n, SumOfFloats{x.data()}, &later);
  run_once(late, AddOne{&once});
  parallel_reduce(Stream::immediate(), n, SumOfFloats{x.data()}, &now);
  late.synchronize();
  EXPECT_EQ(now, later);
  EXPECT_EQ(once, 1);
}

}  // namespace
}  // namespace wisp
