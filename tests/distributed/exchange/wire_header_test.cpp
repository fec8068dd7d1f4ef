#include "distributed/exchange/wire_header.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// The checksum that seal() writes for these payloads.
uint32_t checksum_of(const std::vector<std::vector<uint8_t>>& payloads, bool late = false) {
  TestContext test({.late = late});
  std::vector<Tensor> memory;
  std::vector<ConstBytes> list;
  for (const std::vector<uint8_t>& payload : payloads) {
    memory.push_back(Tensor({static_cast<int64_t>(payload.size())}, DType::u8));
    if (!payload.empty()) std::memcpy(memory.back().raw(), payload.data(), payload.size());
    list.push_back({memory.back().raw(), static_cast<int64_t>(payload.size())});
  }
  WireHeader header;
  std::byte* into = reinterpret_cast<std::byte*>(&header);
  seal(test.stream, {}, {&into, 1}, list);
  test.stream.synchronize();
  return header.checksum;
}

/// The checksum word by word, as docs/wire_format.md defines it.
uint32_t documented(std::span<const std::vector<uint8_t>> payloads) {
  const auto mix = [](uint32_t word, uint32_t position) {
    uint32_t x = word ^ position * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
  };
  uint32_t sum = 0, position = 0;
  for (const std::vector<uint8_t>& payload : payloads) {
    for (size_t at = 0; at <= payload.size() / 4 * 4; at += 4) {
      uint32_t word = 0;
      for (size_t i = at; i < std::min(at + 4, payload.size()); ++i)
        word |= uint32_t{payload[i]} << 8 * (i - at);
      sum += mix(word, position++);
    }
    sum += mix(static_cast<uint32_t>(payload.size()), position++);
  }
  return sum;
}

// The expected sums are from an independent program.
TEST(WireHeader, ChecksumIsTheDocumentedOne) {
  EXPECT_EQ(checksum_of({{1, 2, 3, 4, 5, 6}}), 0x89335508u);
  EXPECT_EQ(checksum_of({{}, {0, 1, 2, 3, 4, 5, 6, 7}}), 0xc4af7558u);
  EXPECT_EQ(checksum_of({{1, 2, 3, 4, 5, 6}}, true), 0x89335508u);
}

TEST(WireHeader, ChecksumSeesEveryBit) {
  const std::vector<uint8_t> payload(75, 0x5a);
  std::set<uint32_t> sums = {checksum_of({payload})};
  for (size_t byte = 0; byte < payload.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> flipped = payload;
      flipped[byte] = static_cast<uint8_t>(flipped[byte] ^ 1 << bit);
      EXPECT_TRUE(sums.insert(checksum_of({flipped})).second) << byte << " " << bit;
    }
  }
}

TEST(WireHeader, ChecksumSeesOrderAndSizes) {
  const std::vector<uint8_t> a = {1, 0, 0, 0}, b = {2, 0, 0, 0};
  const auto joined = [](std::vector<uint8_t> x, const std::vector<uint8_t>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  std::set<uint32_t> sums;
  for (const auto& payloads : std::vector<std::vector<std::vector<uint8_t>>>{{a, b},
                                                                             {b, a},
                                                                             {joined(a, b)},
                                                                             {joined(b, a)},
                                                                             {joined(a, b), {}},
                                                                             {{}, joined(a, b)},
                                                                             {a},
                                                                             {a, {}},
                                                                             {{1}},
                                                                             {{1, 0}},
                                                                             {{1, 0, 0}},
                                                                             {{}},
                                                                             {{0}},
                                                                             {}}) {
    EXPECT_TRUE(sums.insert(checksum_of(payloads)).second) << payloads.size();
  }
}

TEST(WireHeader, ChecksumDoesNotDependOnThreads) {
  std::vector<uint8_t> large(1'000'003);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<uint8_t>(i * 7919 >> 3);
  uint32_t expected = 0;
  for (const int threads : {1, 2}) {
    omp_set_num_threads(threads);
    const uint32_t sum = checksum_of({large});
    if (threads == 1) expected = sum;
    EXPECT_EQ(sum, expected);
  }
}

/// More messages of several payloads than fit into one launch each have their own checksum.
TEST(WireHeader, EachMessageHasItsOwnChecksum) {
  constexpr size_t kMessages = 40, kPayloads = 3;
  TestContext test;
  std::vector<std::vector<uint8_t>> content;
  for (size_t i = 0; i < kMessages * kPayloads; ++i)
    content.push_back(std::vector<uint8_t>(i * 7919 % 70'000, static_cast<uint8_t>(i)));
  std::vector<ConstBytes> payloads;
  for (const std::vector<uint8_t>& bytes : content)
    payloads.push_back({reinterpret_cast<const std::byte*>(bytes.data()), std::ssize(bytes)});
  std::vector<WireHeader> sent(kMessages);
  std::vector<std::byte*> at;
  for (WireHeader& header : sent) at.push_back(reinterpret_cast<std::byte*>(&header));
  seal(test.stream, {.step = 3, .slot = 5}, at, payloads);
  std::vector<ReceivedHeader> received(kMessages);
  read_headers(test.stream, at, payloads, received.data());
  test.stream.synchronize();
  for (size_t m = 0; m < kMessages; ++m) {
    const uint32_t sum = documented(std::span(content).subspan(m * kPayloads, kPayloads));
    EXPECT_EQ(received[m].checksum, sum) << m;
    EXPECT_EQ(complaint(received[m].header, {.step = 3, .slot = 5, .checksum = sum}), "") << m;
  }
}

TEST(WireHeader, IsWrittenLittleEndian) {
  TestContext test;
  Tensor memory({32}, DType::u8);
  const std::byte payload[8] = {std::byte{1}, std::byte{2}, std::byte{3},
                                std::byte{4}, std::byte{5}, std::byte{6}};
  const ConstBytes list{payload, 6};
  std::byte* into = memory.raw();
  seal(test.stream, {.step = 0x01020304, .slot = 0xa0b0c0d0}, {&into, 1}, {&list, 1});
  test.stream.synchronize();
  const std::vector<int> expected = {'W',  'S',  'P',  1,    0x04, 0x03, 0x02, 0x01,
                                     0xd0, 0xc0, 0xb0, 0xa0, 0x08, 0x55, 0x33, 0x89};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(memory.raw()[i]), expected[i]) << i;
}

}  // namespace
}  // namespace wisp
