// Collectives that add up or take the maximum.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "tests/support/ranks.h"

namespace wisp {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                             DType::i32, DType::i64, DType::u8,  DType::u32};

/// The model: one element after the other, ranks in order.
Memory reduced(const std::vector<Memory>& inputs, DType dtype, ReduceOp op) {
  Memory result(inputs[0].size());
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t at = 0; at < result.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, inputs[0].data() + at, sizeof(T));
      if constexpr (std::is_integral_v<T>) {
        T total = element;
        for (size_t r = 1; r < inputs.size(); ++r) {
          std::memcpy(&element, inputs[r].data() + at, sizeof(T));
          total = op == ReduceOp::sum ? static_cast<T>(total + element) : std::max(total, element);
        }
        element = total;
      } else {
        using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
        Wide total = static_cast<Wide>(element);
        for (size_t r = 1; r < inputs.size(); ++r) {
          std::memcpy(&element, inputs[r].data() + at, sizeof(T));
          const Wide next = static_cast<Wide>(element);
          total = op == ReduceOp::sum ? total + next : std::max(total, next);
        }
        element = static_cast<T>(total);
      }
      std::memcpy(result.data() + at, &element, sizeof(T));
    }
  });
  return result;
}

TEST(ThreadCommunicator, AllReduceFollowsTheModelForEveryTypeAndOp) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        std::vector<Memory> data = inputs_of(workers, dtype, 2345);
        const Memory expected = reduced(data, dtype, op);
        run_well(group, [&](Communicator& comm) {
          Memory& own = data[static_cast<size_t>(comm.rank())];
          comm.all_reduce(cut(own, size_of(dtype), {7, 0, 1025, 1, 513, 0}), dtype, op)->wait();
        });
        for (const Memory& result : data)
          EXPECT_EQ(result, expected) << name_of(dtype) << " on " << workers << " workers";
      }
    }
  }
}

TEST(ThreadCommunicator, AllReduceGivesTheSameBitsHoweverTheDataIsCut) {
  const std::vector<int64_t> cuts[] = {{}, {1000}, {0, 1, 2, 3, 5, 8, 13, 21}, {999, 0, 0, 2}};
  ThreadGroup group(4);
  std::vector<Memory> first;
  for (const std::vector<int64_t>& sizes : cuts) {
    std::vector<Memory> data = inputs_of(4, DType::f32, 3001);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.all_reduce(cut(own, 4, sizes), DType::f32, ReduceOp::sum)->wait();
    });
    if (first.empty()) first = data;
    EXPECT_EQ(data, first);
  }
}

TEST(ThreadCommunicator, AllReduceTakesFewerElementsThanWorkers) {
  for (const int64_t n : {0, 1, 3}) {
    ThreadGroup group(5);
    std::vector<Memory> data = inputs_of(5, DType::f32, n);
    const Memory expected = reduced(data, DType::f32, ReduceOp::max);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.all_reduce(cut(own, 4, {}), DType::f32, ReduceOp::max)->wait();
    });
    for (const Memory& result : data) EXPECT_EQ(result, expected);
  }
}

TEST(ThreadCommunicator, MaxKeepsANaN) {
  for (const size_t where : {0u, 1u, 2u}) {
    ThreadGroup group(3);
    std::vector<float> data = {1.0f, 2.0f, 3.0f};
    data[where] = std::numeric_limits<float>::quiet_NaN();
    run_well(group, [&](Communicator& comm) {
      float& own = data[static_cast<size_t>(comm.rank())];
      const Bytes slice{reinterpret_cast<std::byte*>(&own), 4};
      comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::max)->wait();
    });
    for (const float value : data) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ThreadCommunicator, ReduceScatterLeavesEachRankItsShare) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    const int64_t n = 1003;
    std::vector<Memory> data = inputs_of(workers, DType::f32, n);
    const std::vector<Memory> before = data;
    const Memory expected = reduced(data, DType::f32, ReduceOp::sum);
    run_well(group, [&](Communicator& comm) {
      Memory& own = data[static_cast<size_t>(comm.rank())];
      comm.reduce_scatter(cut(own, 4, {11, 0, 300}), DType::f32, ReduceOp::sum)->wait();
    });
    for (int64_t rank = 0; rank < workers; ++rank) {
      const auto index = static_cast<size_t>(rank);
      Memory wanted = before[index];
      const int64_t begin = 4 * (n * rank / workers), end = 4 * (n * (rank + 1) / workers);
      std::copy(expected.begin() + begin, expected.begin() + end, wanted.begin() + begin);
      EXPECT_EQ(data[index], wanted);
    }
  }
}

TEST(ThreadCommunicator, CountsTheBytesOfReductions) {
  for (const int workers : kWorlds) {
    ThreadGroup group(workers);
    for (const int64_t n : {0, 1, 7, 1000, 4001}) {
      std::atomic<int64_t> all_reduce{0}, reduce_scatter{0};
      run_well(group, [&](Communicator& comm) {
        const int64_t own = n * (comm.rank() + 1) / workers - n * comm.rank() / workers;
        std::vector<double> data(static_cast<size_t>(n), 1.0);
        const Bytes slice{reinterpret_cast<std::byte*>(data.data()), 8 * n};
        Transfer transfer = comm.all_reduce({&slice, 1}, DType::f64, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, 8 * (n - own + (workers - 1) * own));
        EXPECT_EQ(transfer.received, transfer.sent);
        all_reduce += transfer.sent;
        transfer = comm.reduce_scatter({&slice, 1}, DType::f64, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, 8 * (n - own));
        EXPECT_EQ(transfer.received, 8 * (workers - 1) * own);
        reduce_scatter += transfer.sent;
        transfer = comm.barrier()->wait();
        EXPECT_EQ(transfer.sent + transfer.received, 0);
      });
      EXPECT_EQ(all_reduce, 2 * (workers - 1) * 8 * n);  // 2 (N-1) / N of the bytes, N times
      EXPECT_EQ(reduce_scatter, (workers - 1) * 8 * n);
    }
  }
}

}  // namespace
}  // namespace wisp
