// Tests that the counted traffic of drawn calls obeys the table that plans and guards read.
#include "distributed/communicator/collective.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "distributed/exchange/message_traffic.h"

namespace wisp {
namespace {

constexpr int64_t kWord = 4;

/// Traffic of each rank in one collective. Its calls name no memory, as only sizes are read.
std::vector<Traffic> counted(int workers, const std::function<Call(int rank)>& call_of) {
  std::vector<Traffic> traffic;
  int64_t sent = 0, received = 0;
  for (int rank = 0; rank < workers; ++rank) {
    traffic.push_back(traffic_of(call_of(rank), rank, workers));
    sent += traffic.back().sent;
    received += traffic.back().received;
  }
  EXPECT_EQ(sent, received);
  return traffic;
}

/// A message of some words in two slices, the first of which may be empty.
struct DrawnMessage {
  explicit DrawnMessage(std::mt19937& random) {
    const auto words = static_cast<int64_t>(random() % 300);
    bytes = words * kWord;
    const int64_t first = static_cast<int64_t>(random() % 300) % (words + 1) * kWord;
    in = {{nullptr, first}, {nullptr, bytes - first}};
    for (const Bytes& slice : in) out.push_back({slice.data, slice.bytes});
  }
  int64_t bytes = 0;
  std::vector<Bytes> in;
  std::vector<ConstBytes> out;
};

template <class AnyBytes>
std::vector<AnyBytes> repeated(const std::vector<AnyBytes>& slices, int times) {
  std::vector<AnyBytes> all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), slices.begin(), slices.end());
  return all;
}

TEST(Collective, CountsInAReductionWhatTheTableSays) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int workers = 1 + static_cast<int>(random() % 9);
    const DrawnMessage message(random);
    const double law =
        bytes_on_wire(Collective::all_reduce, static_cast<double>(message.bytes), workers);
    const bool divides = message.bytes % (workers * kWord) == 0;
    // 2 (N - 1) / N is rounded. A share that does not divide is less than an element off, and goes
    // to N - 1 ranks, but takes the place of what the others keep.
    const double tolerance = divides ? 1e-9 : static_cast<double>((workers - 2) * kWord);
    int64_t sent = 0;
    for (const Traffic& rank : counted(workers, [&](int) {
           return all_reduce_call(message.in, DType::f32, ReduceOp::sum);
         })) {
      EXPECT_NEAR(static_cast<double>(rank.sent), law, tolerance)
          << message.bytes << " bytes, " << workers << " workers";
      EXPECT_EQ(rank.received, rank.sent);
      EXPECT_EQ(rank.steps, 2 * (workers - 1));
      sent += rank.sent;
    }
    EXPECT_EQ(sent, 2 * (workers - 1) * message.bytes);
  }
}

TEST(Collective, CountsInDirectMessagesWhatTheTableSays) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const int workers = 1 + static_cast<int>(random() % 9);
    const DrawnMessage message(random);
    const std::vector<Bytes> in = repeated(message.in, workers);
    const auto expect = [&](Collective kind, const std::function<Call(int rank)>& call_of) {
      const double law = bytes_on_wire(kind, static_cast<double>(message.bytes), workers);
      const std::vector<Traffic> traffic = counted(workers, call_of);
      for (int rank = 0; rank < workers; ++rank) {
        const Traffic& own = traffic[static_cast<size_t>(rank)];
        EXPECT_EQ(static_cast<double>(own.sent), law)
            << "kind " << static_cast<int>(kind) << ", " << workers << " workers, rank " << rank;
        EXPECT_EQ(own.steps, workers - 1);
      }
    };
    expect(Collective::all_gather, [&](int) { return all_gather_call(message.out, in, workers); });
    expect(Collective::all_to_all,
           [&](int) { return all_to_all_call(repeated(message.out, workers), in, workers); });
    expect(Collective::none, [&](int) { return barrier_call(workers); });
  }
}

TEST(Collective, CountsInAnExchangeOneCopyAndOneStepForEachPeer) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const int workers = 1 + static_cast<int>(random() % 9);
    const int period = 1 + static_cast<int>(random() % 4);
    const DrawnMessage message(random);
    std::vector<int> peers(static_cast<size_t>(workers));
    const std::vector<Traffic> traffic = counted(workers, [&](int rank) {
      std::vector<Exchange> messages;
      for (int peer = 0; peer < workers; ++peer) {
        if (peer != rank && (peer + rank) % period == 0)
          messages.push_back({peer, message.out[1], message.in[1]});
      }
      peers[static_cast<size_t>(rank)] = static_cast<int>(messages.size());
      return exchange_call(messages, rank, workers);
    });
    const auto bytes = static_cast<double>(message.out[1].bytes);
    for (size_t rank = 0; rank < traffic.size(); ++rank) {
      for (const Collective kind : {Collective::pair, Collective::neighbours})
        EXPECT_EQ(static_cast<double>(traffic[rank].sent),
                  peers[rank] * bytes_on_wire(kind, bytes, workers));
      EXPECT_EQ(traffic[rank].steps, peers[rank]);
    }
  }
}

}  // namespace
}  // namespace wisp
