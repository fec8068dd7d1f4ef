// The phases of thread blocks, with threads of the CPU in the place of a block's.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/core/cuda/thread_block.h"  // what the phases take from nvcc
//
#include "core/cuda/chunk_phases.h"
#include "core/cuda/team_phases.h"

namespace wisp::cuda {
namespace {

void on_a_team(const std::function<void()>& body) { on_a_block(kTeamThreads, body); }

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
    on_a_team([&] {
      const int64_t total = team_scan(
          sums, n, [&](int64_t i) { return found[static_cast<size_t>(i)]; },
          [&](int64_t i, int64_t before) { found[static_cast<size_t>(i)] = before; });
      right += total == std::accumulate(values.begin(), values.end(), int64_t{0});
    });
    EXPECT_EQ(found, expected) << n;
    EXPECT_EQ(right, kTeamThreads) << n << ": each thread has the sum";
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
    on_a_team([&] {
      const int64_t count = team_select(
          sums, n, keep, [&](int64_t at, int64_t i) { found.at(static_cast<size_t>(at)) = i; });
      right += count == std::ssize(expected);
    });
    EXPECT_EQ(found, expected) << n;
    EXPECT_EQ(right, kTeamThreads) << n;
  }
}

TEST(TeamPhases, BatchesReachEachElementOnce) {
  for (const int64_t n : kSizes) {
    const std::vector<int64_t> values = numbers(n);
    std::vector<int64_t> twice(values.size(), 0);
    on_a_team([&] {
      team_batches(
          n, [&](int64_t i) { return 2 * values[static_cast<size_t>(i)]; },
          [&](int64_t i, int64_t value) { twice[static_cast<size_t>(i)] += value; });
    });
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(twice[i], 2 * values[i]) << i << " of " << n;
  }
}

TEST(TeamPhases, HistogramCountsEachElementOnce) {
  for (const int64_t n : kSizes) {
    for (const int64_t bins :
         {1, 3, 40}) {  // all of a warp in one bin, in few, in as many as lanes
      const auto bin = [&](int64_t i) { return static_cast<int>(i * i % (bins + 1)) - 1; };
      std::vector<uint32_t> expected(static_cast<size_t>(bins), 5), found = expected;
      for (int64_t i = 0; i < n; ++i)
        if (bin(i) >= 0) ++expected[static_cast<size_t>(bin(i))];
      on_a_team([&] { team_histogram(n, found.data(), bin); });
      EXPECT_EQ(found, expected) << n << " elements, " << bins << " bins";
    }
  }
}

/// Selects the elements of a chunk whose words are words[thread], behind `earlier` elements that
/// every seventh thread tells a part of. Returns emitted[position - earlier] = element.
std::vector<int64_t> emitted(const std::vector<uint32_t>& words, int64_t earlier,
                             int64_t capacity) {
  std::vector<int64_t> result(32 * words.size(), -1);
  WarpSums sums;
  on_a_block(kChunkThreads, [&] {
    const unsigned thread = threadIdx.x;
    const int64_t told = thread % 7 == 0 ? 10 : 0;
    const int64_t rest = thread == 255 ? earlier - 10 * 37 : 0;
    const Before before = before_thread(told + rest, __popc(words[thread]), sums);
    EXPECT_EQ(before.earlier_chunks, earlier);
    emit_bits(words[thread], 32 * int64_t{thread}, before.earlier_chunks + before.earlier_threads,
              capacity,
              [&](int64_t at, int64_t i) { result.at(static_cast<size_t>(at - earlier)) = i; });
  });
  return result;
}

TEST(ChunkPhases, EmitsSetBitsInOrder) {
  constexpr int64_t kEarlier = 5'000'000'000;
  for (const uint32_t spread : {1u, 3u, 97u, 4096u}) {
    std::vector<uint32_t> words(kChunkThreads, 0);
    std::vector<int64_t> expected;
    for (uint32_t i = 0; i < 32 * kChunkThreads; ++i) {
      if (i * i % spread != 0) continue;
      words[i / 32] |= 1u << i % 32;
      expected.push_back(i);
    }
    const auto most = std::ssize(expected);
    for (const int64_t capacity : {most, most - 1, most / 2, int64_t{0}}) {
      std::vector<int64_t> within = expected;
      within.resize(static_cast<size_t>(capacity));
      within.resize(32 * words.size(), -1);
      EXPECT_EQ(emitted(words, kEarlier, kEarlier + capacity), within)
          << "one of " << spread << ", room for " << capacity;
    }
  }
}

}  // namespace
}  // namespace wisp::cuda
