#include "distributed/exchange/message_traffic.h"

#include <gtest/gtest.h>

#include <vector>

namespace wisp {
namespace {

constexpr int kWorkers = 4;

/// Messages of the four ranks, the number of outlets that each fills, and the ranks that it hears.
struct Meaning {
  std::vector<Message> of_rank;
  std::vector<int> outlets;
  std::vector<std::vector<int>> heard;
};

std::vector<Message> same(Message message) { return std::vector<Message>(kWorkers, message); }

const std::vector<std::vector<int>> kNobody(kWorkers);
const std::vector<std::vector<int>> kAll(kWorkers, {0, 1, 2, 3});
const std::vector<std::vector<int>> kRing = {{1, 3}, {0, 2}, {1, 3}, {0, 2}};

std::vector<Meaning> every_kind() {
  return {
      {same({.kind = Collective::none}), {0, 0, 0, 0}, kNobody},
      {same({.kind = Collective::all_reduce}), {1, 1, 1, 1}, kNobody},
      {same({.kind = Collective::all_gather}), {1, 1, 1, 1}, kAll},
      {same({.kind = Collective::all_to_all}), {4, 4, 4, 4}, kAll},
      // ranks 0 and 1 swap; rank 2 sends to rank 3
      {{{.kind = Collective::pair, .to = 1, .from = 1},
        {.kind = Collective::pair, .to = 0, .from = 0},
        {.kind = Collective::pair, .to = 3},
        {.kind = Collective::pair, .from = 2}},
       {1, 1, 1, 0},
       {{1}, {0}, {}, {2}}},
      {same({.kind = Collective::neighbours}),
       {1, 1, 1, 1},
       {{0, 1, 3}, {0, 1, 2}, {1, 2, 3}, {0, 2, 3}}},
  };
}

TEST(Message, SaysWhoSpeaksAndWhoHearsWhom) {
  for (const Meaning& meaning : every_kind()) {
    for (int rank = 0; rank < kWorkers; ++rank) {
      const auto index = static_cast<size_t>(rank);
      const Message& message = meaning.of_rank[index];
      const int kind = static_cast<int>(message.kind);
      EXPECT_EQ(outlet_count(message, kWorkers), meaning.outlets[index])
          << "kind " << kind << ", rank " << rank;
      std::vector<int> heard;
      for (int from = 0; from < kWorkers; ++from) {
        if (!hears(message, rank, from, kRing[index])) continue;
        heard.push_back(from);
        EXPECT_LT(outlet_for(message, rank),
                  static_cast<size_t>(meaning.outlets[static_cast<size_t>(from)]))
            << "kind " << kind << ": rank " << rank << " hears what rank " << from
            << " does not say";
      }
      EXPECT_EQ(heard, meaning.heard[index]) << "kind " << kind << ", rank " << rank;
    }
  }
}

TEST(Message, IsOneOutletForEachRankInAnAllToAllOnly) {
  for (const Meaning& meaning : every_kind()) {
    const Message& message = meaning.of_rank[3];
    EXPECT_EQ(outlet_for(message, 3), message.kind == Collective::all_to_all ? 3u : 0u);
  }
}

TEST(Message, IsComparedWithADenseAllReduce) {
  const auto is_more = [](const Message& message, int64_t raw_bytes, int workers) {
    return is_more_than_dense(bytes_on_wire({&message, 1}, workers), raw_bytes, workers);
  };
  EXPECT_FALSE(is_more({.kind = Collective::all_reduce, .bytes = 400}, 400, 4));
  // 4 workers with 400 raw bytes send 600 dense, or 3 (b + 16) in a gather of b bytes and a header
  EXPECT_FALSE(is_more({.kind = Collective::all_gather, .bytes = 100}, 400, 4));
  Message larger{.kind = Collective::all_gather, .bytes = 185};
  EXPECT_TRUE(is_more(larger, 400, 4));
  larger.bytes = 184;
  EXPECT_FALSE(is_more(larger, 400, 4));
  larger.variable = true;  // adds the gather of the sizes
  EXPECT_TRUE(is_more(larger, 400, 4));
  EXPECT_FALSE(is_more(larger, 4, 1));  // a world of one sends nothing
}

}  // namespace
}  // namespace wisp
