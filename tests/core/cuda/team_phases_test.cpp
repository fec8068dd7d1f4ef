// The phases of a thread block, with 512 threads of the CPU in the place of a block's.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <bit>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): what nvcc brings along
#define __device__
namespace {

constexpr int kBlock = 512, kWarp = 32;

struct {
  unsigned x = 0;
} thread_local threadIdx;

std::barrier<>& block_barrier() {
  static std::barrier<> barrier(kBlock);
  return barrier;
}
void __syncthreads() { block_barrier().arrive_and_wait(); }

/// What the lanes of a warp show each other.
struct Warp {
  std::barrier<> barrier{kWarp};
  int64_t shown[kWarp] = {};
};
Warp& warp() {
  static Warp warps[kBlock / kWarp];
  return warps[threadIdx.x / kWarp];
}
/// The value that lane `of` shows.
int64_t exchanged(int64_t own, int of) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  warp().shown[lane] = own;
  warp().barrier.arrive_and_wait();
  const int64_t other = warp().shown[of];
  warp().barrier.arrive_and_wait();
  return other;
}
int64_t __shfl_sync(uint32_t, int64_t own, int of) { return exchanged(own, of); }
int64_t __shfl_up_sync(uint32_t, int64_t own, int step) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  return exchanged(own, lane < step ? lane : lane - step);
}
uint32_t __ballot_sync(uint32_t, bool own) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  warp().shown[lane] = own ? 1 : 0;
  warp().barrier.arrive_and_wait();
  uint32_t mask = 0;
  for (int of = 0; of < kWarp; ++of) mask |= static_cast<uint32_t>(warp().shown[of]) << of;
  warp().barrier.arrive_and_wait();
  return mask;
}
int __popc(uint32_t word) { return std::popcount(word); }

}  // namespace
// NOLINTEND(bugprone-reserved-identifier)

#include "core/cuda/team_phases.h"
#undef __device__

namespace wisp::cuda {
namespace {

static_assert(kTeamThreads == kBlock);

/// Calls body() on every thread of a block.
void on_a_block(const std::function<void()>& body) {
  std::vector<std::thread> threads;
  threads.reserve(kBlock);
  for (unsigned t = 0; t < kBlock; ++t) {
    threads.emplace_back([&body, t] {
      threadIdx.x = t;
      body();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Around a warp, a block, and the elements that a block reads at once.
constexpr int64_t kSizes[] = {0, 1, 33, 511, 513, 4095, 4096, 4097, 9000};

std::vector<int64_t> numbers(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < n; ++i) result.push_back(i * 7919 % 1000 + (i % 5 == 0 ? 1LL << 40 : 0));
  return result;
}

TEST(TeamPhases, ScanTellsWhatIsBeforeEach) {
  for (const int64_t n : kSizes) {
    const std::vector<int64_t> values = numbers(n);
    std::vector<int64_t> expected(values.size());
    std::exclusive_scan(values.begin(), values.end(), expected.begin(), int64_t{0});
    std::vector<int64_t> found = values;  // emit may write what value read
    int64_t sums[kTeamWarps];
    std::atomic<int> right = 0;
    on_a_block([&] {
      const int64_t total = team_scan(
          sums, n, [&](int64_t i) { return found[static_cast<size_t>(i)]; },
          [&](int64_t i, int64_t before) { found[static_cast<size_t>(i)] = before; });
      right += total == std::accumulate(values.begin(), values.end(), int64_t{0});
    });
    EXPECT_EQ(found, expected) << n;
    EXPECT_EQ(right, kBlock) << n << ": each thread has the sum";
  }
}

TEST(TeamPhases, SelectKeepsTheOrder) {
  for (const int64_t n : kSizes) {
    std::vector<int64_t> expected;
    const auto keep = [](int64_t i) { return i * i % 7 == 2; };
    for (int64_t i = 0; i < n; ++i)
      if (keep(i)) expected.push_back(i);
    std::vector<int64_t> found(expected.size());
    int64_t sums[kTeamWarps];
    std::atomic<int> right = 0;
    on_a_block([&] {
      const int64_t count = team_select(
          sums, n, keep, [&](int64_t at, int64_t i) { found.at(static_cast<size_t>(at)) = i; });
      right += count == std::ssize(expected);
    });
    EXPECT_EQ(found, expected) << n;
    EXPECT_EQ(right, kBlock) << n;
  }
}

TEST(TeamPhases, BatchesReachEachElementOnce) {
  for (const int64_t n : kSizes) {
    const std::vector<int64_t> values = numbers(n);
    std::vector<int64_t> twice(values.size(), 0);
    on_a_block([&] {
      team_batches(
          n, [&](int64_t i) { return 2 * values[static_cast<size_t>(i)]; },
          [&](int64_t i, int64_t value) { twice[static_cast<size_t>(i)] += value; });
    });
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(twice[i], 2 * values[i]) << i << " of " << n;
  }
}

}  // namespace
}  // namespace wisp::cuda
