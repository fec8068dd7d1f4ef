// A group of ranks, each on a thread or in a process, with memory for their exchanges.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "distributed/communicator/thread_communicator.h"
#include "distributed/launch.h"

namespace wisp {

using Memory = std::vector<std::byte>;

/// Numbers of workers to test: several for threads, the number that mpirun started for processes.
inline std::vector<int> worlds() {
  if (world().processes()) return {world().size};
  return {1, 2, 3, 4, 5, 8};
}

/// Runs work(communicator) on each rank: on all for threads, on this process's rank else.
template <class Work>
void run_well(int workers, const Work& work) {
  run_workers(workers, {.threads = 1}, [&](Worker& worker) { work(worker.communicator); });
}

/// Runs work(communicator) on one thread per rank. Returns the error texts by rank, empty without
/// an error.
template <class Work>
std::vector<std::string> run_ranks(ThreadGroup& group, const Work& work) {
  std::vector<std::string> errors(static_cast<size_t>(group.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(group.communicator(rank));
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<std::string> of_all(int workers, const std::string& text) {
  return std::vector<std::string>(static_cast<size_t>(workers), text);
}

/// Cuts `memory` into slices of the given sizes, in elements. The last slice takes the rest.
inline std::vector<Bytes> cut(Memory& memory, int64_t element, const std::vector<int64_t>& sizes) {
  std::vector<Bytes> slices;
  auto left = static_cast<int64_t>(memory.size());
  std::byte* data = memory.data();
  for (const int64_t size : sizes) {
    const int64_t bytes = std::min(left, size * element);
    slices.push_back({data, bytes});
    data += bytes;
    left -= bytes;
  }
  slices.push_back({data, left});
  return slices;
}

template <class T>
T value_of(double number) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(number));
  else if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(static_cast<int64_t>(number));
  else
    return static_cast<T>(number);
}

/// Calls f(T{}) with the C++ type of a dtype.
template <class F>
void with_type(DType dtype, const F& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::u32:
      return f(uint32_t{});
  }
}

/// n random elements. Sums of them round in every float type and wrap in u8.
inline Memory random_elements(DType dtype, int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1000.0, 1000.0);
  Memory memory(static_cast<size_t>(n * size_of(dtype)));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) {
      const T value = value_of<T>(uniform(random));
      std::memcpy(memory.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return memory;
}
inline std::vector<Memory> inputs_of(int workers, DType dtype, int64_t n) {
  std::vector<Memory> inputs;
  for (int rank = 0; rank < workers; ++rank)
    inputs.push_back(random_elements(dtype, n, static_cast<unsigned>(100 * workers + rank)));
  return inputs;
}
/// The message from rank `from` to rank `to` (-1: to all) in slice `s`. Sizes differ, some are
/// empty.
inline Memory mail(int from, int to, int s) {
  const int bytes = (37 * from + 11 * (to + 1) + 5 * s) % 97;
  return random_elements(DType::u8, bytes, static_cast<unsigned>(1000 * from + 10 * to + s + 10));
}

inline Bytes bytes_of(Memory& memory) {
  return {memory.data(), static_cast<int64_t>(memory.size())};
}
inline ConstBytes bytes_of(const Memory& memory) {
  return {memory.data(), static_cast<int64_t>(memory.size())};
}
}  // namespace wisp
