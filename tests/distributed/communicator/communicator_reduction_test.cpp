// Tests of the collectives that compute a sum or a maximum.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/ranks.h"

namespace wisp {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                             DType::i32, DType::i64, DType::u8,  DType::u32};

/// The expected reduction: element by element, over the ranks in order.
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

TEST(Communicator, AllReduceFollowsTheModelForEveryTypeAndOp) {
  for (const int workers : worlds()) {
    for (const DType dtype : kDTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        std::vector<Memory> data = inputs_of(workers, dtype, 2345);
        const Memory expected = reduced(data, dtype, op);
        run_well(workers, [&](Communicator& comm) {
          Memory& own = data[static_cast<size_t>(comm.rank())];
          comm.all_reduce(cut(own, size_of(dtype), {7, 0, 1025, 1, 513, 0}), dtype, op)->wait();
          EXPECT_EQ(own, expected) << name_of(dtype) << " on " << workers << " workers";
        });
      }
    }
  }
}

TEST(Communicator, AllReduceGivesTheSameBitsHoweverTheDataIsCut) {
  const std::vector<int64_t> cuts[] = {{}, {1000}, {0, 1, 2, 3, 5, 8, 13, 21}, {999, 0, 0, 2}};
  for (const int workers : worlds()) {
    const std::vector<Memory> data = inputs_of(workers, DType::f32, 3001);
    run_well(workers, [&](Communicator& comm) {
      Memory first;
      for (const std::vector<int64_t>& sizes : cuts) {
        Memory own = data[static_cast<size_t>(comm.rank())];
        comm.all_reduce(cut(own, 4, sizes), DType::f32, ReduceOp::sum)->wait();
        if (first.empty()) first = own;
        EXPECT_EQ(own, first);
      }
    });
  }
}

TEST(Communicator, AllReduceTakesFewerElementsThanWorkers) {
  for (const int workers : worlds()) {
    for (const int64_t n : {0, 1, 3}) {
      std::vector<Memory> data = inputs_of(workers, DType::f32, n);
      const Memory expected = reduced(data, DType::f32, ReduceOp::max);
      run_well(workers, [&](Communicator& comm) {
        Memory& own = data[static_cast<size_t>(comm.rank())];
        comm.all_reduce(cut(own, 4, {}), DType::f32, ReduceOp::max)->wait();
        EXPECT_EQ(own, expected);
      });
    }
  }
}

TEST(Communicator, MaxKeepsANaN) {
  for (const int workers : worlds()) {
    for (int where = 0; where < workers; ++where) {
      run_well(workers, [&](Communicator& comm) {
        float own = comm.rank() == where ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
        const Bytes slice{reinterpret_cast<std::byte*>(&own), 4};
        comm.all_reduce({&slice, 1}, DType::f32, ReduceOp::max)->wait();
        EXPECT_TRUE(std::isnan(own));
      });
    }
  }
}

TEST(Communicator, CountsTheBytesOfReductions) {
  for (const int workers : worlds()) {
    for (const int64_t n : {0, 1, 7, 1000, 4001}) {
      run_well(workers, [&](Communicator& comm) {
        const int64_t own = n * (comm.rank() + 1) / workers - n * comm.rank() / workers;
        std::vector<double> data(static_cast<size_t>(n), 1.0);
        const Bytes slice{reinterpret_cast<std::byte*>(data.data()), 8 * n};
        Transfer transfer = comm.all_reduce({&slice, 1}, DType::f64, ReduceOp::sum)->wait();
        EXPECT_EQ(transfer.sent, 8 * (n - own + (workers - 1) * own));
        EXPECT_EQ(transfer.received, transfer.sent);
        int64_t sent = transfer.sent;
        transfer = comm.barrier()->wait();
        EXPECT_EQ(transfer.sent + transfer.received, 0);
        const Bytes total{reinterpret_cast<std::byte*>(&sent), sizeof sent};
        comm.all_reduce({&total, 1}, DType::i64, ReduceOp::sum)->wait();
        EXPECT_EQ(sent, 2 * (workers - 1) * 8 * n);  // N ranks, 2 (N - 1) / N of the bytes each
      });
    }
  }
}

}  // namespace
}  // namespace wisp
