// Tests of messages between processes, within one process.
#include "distributed/communicator/mail.h"

#include <gtest/gtest.h>

#include "tests/support/ranks.h"

namespace wisp {
namespace {

using Kind = Call::Kind;

Mail sum_of(std::vector<float>& data, int rank, int workers) {
  const Bytes slice{reinterpret_cast<std::byte*>(data.data()),
                    static_cast<int64_t>(data.size() * sizeof(float))};
  return {all_reduce_call({&slice, 1}, DType::f32, ReduceOp::sum), rank, workers};
}

Mail gather_of(const Memory& own, std::vector<Memory>& all, int rank) {
  const ConstBytes out = bytes_of(own);
  std::vector<Bytes> in;
  for (Memory& memory : all) in.push_back(bytes_of(memory));
  return {all_gather_call({&out, 1}, in, static_cast<int>(all.size())), rank,
          static_cast<int>(all.size())};
}

TEST(Mail, TwoRoundsMakeASum) {
  std::vector<float> data[] = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}};
  Mail mails[] = {sum_of(data[0], 0, 2), sum_of(data[1], 1, 2)};
  ASSERT_EQ(mails[0].rounds(), 2);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::byte> memory[2];
    const ConstBytes messages[] = {mails[0].write(round, 1, memory[0]),
                                   mails[1].write(round, 0, memory[1])};
    EXPECT_FALSE(mails[0].check(round, 1, messages[1]));
    EXPECT_FALSE(mails[1].check(round, 0, messages[0]));
    for (Mail& mail : mails) mail.read(round, messages);
  }
  EXPECT_EQ(data[0], (std::vector<float>{11, 22, 33, 44, 55}));
  EXPECT_EQ(data[1], data[0]);
}

TEST(Mail, BytesInFrontStayBelow200) {
  const Memory own(1000);
  std::vector<Memory> all(2, Memory(1000));
  std::vector<std::byte> memory;
  EXPECT_LE(gather_of(own, all, 0).write(0, 1, memory).bytes, 1200);
}

TEST(Mail, SaysWhichCallDoesNotFitRankZeros) {
  std::vector<float> data(8);
  const Memory own(4);
  std::vector<Memory> all(3, Memory(4));
  const Mail sum = sum_of(data, 0, 3), gather = gather_of(own, all, 2), other = sum_of(data, 1, 3);
  std::vector<std::byte> memory;
  const std::string why =
      "calls all_gather of 4 bytes where rank 0 calls all_reduce of 32 bytes (f32, sum)";
  auto mismatch = gather.check(0, 0, sum.write(0, 2, memory));  // rank 2 reads a message of rank 0
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->rank, 2);
  EXPECT_EQ(mismatch->why, why);
  mismatch = sum.check(0, 2, gather.write(0, 0, memory));  // rank 0 reads a message of rank 2
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->rank, 2);
  EXPECT_EQ(mismatch->why, why);
  mismatch = other.check(0, 2, gather.write(0, 1, memory));  // rank 1 reads a message of rank 2
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->rank, -1);
}

TEST(Mail, SaysWhichSizesDoNotFit) {
  const Memory twelve(12), eight(8);
  std::vector<Memory> expected = {Memory(12), Memory(9)}, right = {Memory(12), Memory(8)};
  const Mail receiver = gather_of(twelve, expected, 0), sender = gather_of(eight, right, 1);
  std::vector<std::byte> memory;
  const auto mismatch = receiver.check(0, 1, sender.write(0, 0, memory));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->rank, 0);
  EXPECT_EQ(mismatch->why,
            "all_gather of 12 bytes expects 9 bytes in slice 0 from rank 1, which sends 8");
}

TEST(Mail, SaysIfWhatARankKeepsDoesNotFit) {
  const Memory own(8);
  std::vector<Memory> all = {Memory(9), Memory(8)};
  const auto mismatch = gather_of(own, all, 0).check_own();
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->why,
            "all_gather of 8 bytes expects 9 bytes in slice 0 from rank 0, which sends 8");
}

TEST(Mail, AMessageOfAnotherGenerationIsRefused) {
  const auto barrier_in = [](int generation, int rank) {
    Call call = barrier_call(3);
    call.label.generation = generation;
    return Mail(call, rank, 3);
  };
  const Mail own = barrier_in(3, 1);
  std::vector<std::byte> memory;
  EXPECT_FALSE(own.check(0, 2, barrier_in(3, 2).write(0, 1, memory)));
  for (const int other : {2, 4}) {
    const auto mismatch = own.check(0, 2, barrier_in(other, 2).write(0, 1, memory));
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->rank, 2);
    EXPECT_EQ(mismatch->why,
              concat("sent a message of generation ", other, ", expected one of generation 3"));
  }
}

TEST(Mail, ATornMessageIsNobodys) {
  std::vector<float> data(8);
  const Mail first = sum_of(data, 0, 2), second = sum_of(data, 1, 2);
  std::vector<std::byte> memory;
  ConstBytes message = second.write(0, 0, memory);
  for (const int64_t bytes : {int64_t{0}, int64_t{3}, message.bytes - 1}) {
    message.bytes = bytes;
    const auto mismatch = first.check(0, 1, message);
    ASSERT_TRUE(mismatch) << bytes;
    EXPECT_EQ(mismatch->rank, 1);
  }
}

}  // namespace
}  // namespace wisp
