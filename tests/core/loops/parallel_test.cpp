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

/// Sizes around every border: lanes, blocks, thread grain.
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

struct AddOne {
  int* to;
  WISP_HD void operator()() const { ++*to; }
};

/// Runs reduce and for with a kernel that reads `y` only where `x` is not above zero. The numbers
/// are integers of both signs, so their sums are exact in any order.
template <class T>
void expect_conditional_reads() {
  const Stream stream = Stream::immediate();
  for (const int64_t n : kSizes) {
    std::vector<T> x, y, expected;
    T expected_sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<T>(i * 37 % 19 - 9));
      y.push_back(static_cast<T>(i * 7 % 11 - 5));
      expected.push_back(x.back() <= 0 ? x.back() * y.back() : T(0));
      expected_sum += expected.back();
    }
    T sum = -1;
    parallel_reduce(stream, n, ConditionalSum<T>{x.data(), y.data()}, &sum);
    EXPECT_EQ(sum, expected_sum) << n;

    std::vector<T> product(x.size(), T(7));
    parallel_for(stream, n, ConditionalProduct<T>{x.data(), y.data(), product.data()});
    EXPECT_EQ(product, expected) << n;
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
