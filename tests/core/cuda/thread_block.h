// A thread block made of the CPU's threads, for tests of the phases in core/cuda. It declares what
// nvcc brings along, so include it before the phases, in one source of a program.
#pragma once

#include <atomic>
#include <barrier>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier)
#define __device__
namespace {

constexpr int kWarp = 32;

struct {
  unsigned x = 0;
} thread_local threadIdx;

/// The values that the lanes of a warp show each other.
struct Warp {
  std::barrier<> barrier{kWarp};
  int64_t shown[kWarp] = {};
};

struct Block {
  explicit Block(int threads) : barrier(threads), warps(static_cast<size_t>(threads / kWarp)) {}
  std::barrier<> barrier;
  std::vector<Warp> warps;
};
std::unique_ptr<Block>& block() {
  static std::unique_ptr<Block> only;
  return only;
}

/// Calls body() on every thread of a block.
void on_a_block(int count, const std::function<void()>& body) {
  block() = std::make_unique<Block>(count);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&body, t] {
      threadIdx.x = static_cast<unsigned>(t);
      body();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void __syncthreads() { block()->barrier.arrive_and_wait(); }

int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

/// of(what the lanes show), where this lane shows `own`.
template <class Of>
auto shown(int64_t own, const Of& of) {
  Warp& warp = block()->warps[threadIdx.x / kWarp];
  warp.shown[lane()] = own;
  warp.barrier.arrive_and_wait();
  const auto result = of(warp.shown);
  warp.barrier.arrive_and_wait();
  return result;
}
template <class T>
T __shfl_sync(uint32_t, T own, int of) {
  return static_cast<T>(shown(own, [of](const int64_t* all) { return all[of]; }));
}
template <class T>
T __shfl_up_sync(uint32_t all, T own, int step) {
  return __shfl_sync(all, own, lane() < step ? lane() : lane() - step);
}
template <class T>
T __shfl_xor_sync(uint32_t all, T own, int step) {
  return __shfl_sync(all, own, lane() ^ step);
}
/// The lanes that show `value`.
uint32_t lanes_with(int64_t own, int64_t value) {
  return shown(own, [value](const int64_t* all) {
    uint32_t mask = 0;
    for (int of = 0; of < kWarp; ++of) mask |= static_cast<uint32_t>(all[of] == value) << of;
    return mask;
  });
}
uint32_t __ballot_sync(uint32_t, bool own) { return lanes_with(own, 1); }
[[maybe_unused]] bool __any_sync(uint32_t, bool own) { return lanes_with(own, 1) != 0; }
[[maybe_unused]] uint32_t __match_any_sync(uint32_t, int own) { return lanes_with(own, own); }
int __popc(uint32_t word) { return std::popcount(word); }
[[maybe_unused]] int __ffs(int word) {
  return word == 0 ? 0 : std::countr_zero(static_cast<uint32_t>(word)) + 1;
}
[[maybe_unused]] void atomicAdd(uint32_t* to, int more) {
  std::atomic_ref(*to) += static_cast<uint32_t>(more);
}

}  // namespace
// NOLINTEND(bugprone-reserved-identifier)
