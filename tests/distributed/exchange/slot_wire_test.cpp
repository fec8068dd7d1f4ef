// Tests that damaged messages are found, and that large reductions travel in pieces. The tests of
// gradient averaging cover messages that arrive undamaged.
#include "distributed/exchange/slot_wire.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "distributed/communicator/thread_communicator.h"
#include "distributed/exchange/wire_header.h"
#include "tests/support/damaging_communicator.h"
#include "tests/support/ranks.h"
#include "tests/support/test_replica.h"
#include "tests/support/toy_compressors.h"

namespace wisp {
namespace {

/// Options with two buckets of one unit, which is one segment.
ReplicaOptions two_buckets(const MakeToy& make) {
  ReplicaOptions options = all_by(make);
  options.shapes = {{64, 8}, {64, 8}};
  options.averaging.buckets.bucket_bytes = 0;
  return options;
}

std::unique_ptr<Compressor> gather() { return toy_guarded(100, nullptr); }

/// The error text of each rank after two steps in which rank `damaged` receives damaged messages.
std::vector<std::string> steps(int workers, const MakeToy& make, const Damage& damage,
                               int damaged = 1) {
  ThreadGroup group(workers, {});
  return run_ranks(group, [&](Communicator& communicator) {
    DamagingCommunicator damaging(communicator, [&](int call, std::span<const Bytes> in) {
      if (communicator.rank() == damaged) damage(call, in);
    });
    TestReplica replica(damaging, two_buckets(make));
    // a rank that completed the first step learns of the failure in the second
    for (int64_t step = 0; step < 2; ++step) replica.step(step, small_integers);
  });
}

/// Expects that every rank names the finder, rank 1, and the step, bucket, sender and cause.
void expect_found(const std::vector<std::string>& errors, const std::string& message,
                  const std::string& cause) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    const std::string text = (rank == 1 ? "" : "rank 1: ") + message;
    EXPECT_EQ(errors[rank].substr(0, text.size()), text) << "rank " << rank;
    EXPECT_NE(errors[rank].find(cause), std::string::npos) << errors[rank];
  }
}

Damage flip(int of_call, int64_t byte, int bit = 0) {
  return [=](int call, std::span<const Bytes> in) {
    if (call == of_call) in[0].data[byte] ^= std::byte{1} << bit;
  };
}

TEST(SlotWire, EveryByteOfAHeaderCounts) {
  const std::vector<std::string> causes = {"does not begin with a header",
                                           "does not begin with a header",
                                           "does not begin with a header",
                                           "has version 0 of the wire format, this program reads 1",
                                           "is of step 1 ",
                                           "is of step 256 ",
                                           "is of step 65536 ",
                                           "is of step 16777216 ",
                                           "is for slot ",
                                           "is for slot ",
                                           "is for slot ",
                                           "is for slot ",
                                           "is damaged",
                                           "is damaged",
                                           "is damaged",
                                           "is damaged"};
  ASSERT_EQ(causes.size(), static_cast<size_t>(kHeaderBytes));
  for (int byte = 0; byte < kHeaderBytes; ++byte) {
    expect_found(steps(3, gather, flip(0, byte)), "step 0, bucket 0: the message of rank 0 ",
                 causes[static_cast<size_t>(byte)]);
  }
}

TEST(SlotWire, EveryBitOfAPayloadCounts) {
  for (const int64_t byte : {0, 1, 2, 3, 4, 1001, 2044, 2047}) {
    for (const int bit : {0, 3, 7}) {
      expect_found(steps(2, gather, flip(1, kHeaderBytes + byte, bit)),
                   "step 0, bucket 1: the message of rank 0 ", "is damaged");
    }
  }
}

TEST(SlotWire, AMessageForAnotherSlotIsFound) {
  std::vector<std::byte> first;
  const Damage repeat = [&](int call, std::span<const Bytes> in) {
    if (call == 0) first.assign(in[0].data, in[0].data + in[0].bytes);
    if (call == 1) std::copy(first.begin(), first.end(), in[0].data);
  };
  expect_found(steps(2, gather, repeat), "step 0, bucket 1: the message of rank 0 ", "is for slot");
}

TEST(SlotWire, AMessageOfAnotherSenderIsFound) {
  const Damage swap = [&](int call, std::span<const Bytes> in) {
    if (call == 0) std::swap_ranges(in[0].data, in[0].data + in[0].bytes, in[2].data);
  };
  expect_found(steps(3, gather, swap), "step 0, bucket 0: the message of rank 0 ", "is for slot");
}

TEST(SlotWire, AMessageWithoutItsEndIsFound) {
  const Damage cut = [&](int call, std::span<const Bytes> in) {
    if (call == 0) std::fill_n(in[0].data + in[0].bytes - 5, 5, std::byte{0xff});
  };
  expect_found(steps(2, gather, cut), "step 0, bucket 0: the message of rank 0 ", "is damaged");
}

TEST(SlotWire, EveryKindOfMessageIsChecked) {
  struct Kind {
    const char* name;
    MakeToy make;
    int call;
    int64_t bucket;
  };
  // The gather of sizes is a call too. In a tree, rank 1 sends to rank 0, which answers.
  for (const Kind& kind :
       {Kind{"all_to_all", toy_owners, 1, 0}, Kind{"all_gather after it", toy_owners, 3, 0},
        Kind{"variable", toy_nonzeros, 1, 0}, Kind{"variable, next bucket", toy_nonzeros, 3, 1},
        Kind{"tree", [] { return toy_tree(); }, 1, 0},
        Kind{"variable tree", [] { return toy_tree(true); }, 3, 0}}) {
    const auto errors = steps(2, kind.make, flip(kind.call, kHeaderBytes + 3));
    SCOPED_TRACE(kind.name);
    expect_found(errors, concat("step 0, bucket ", kind.bucket, ": the message of rank 0 "),
                 "is damaged");
  }
  // damage the message that rank 1 of a tree sends to rank 0
  const auto errors = steps(
      2, [] { return toy_tree(); }, flip(0, kHeaderBytes), 0);
  EXPECT_EQ(errors[0].substr(0, 40), "step 0, bucket 0: the message of rank 1 ") << errors[0];
  EXPECT_EQ(errors[1], "rank 0: " + errors[0]);
}

TEST(SlotWire, SizesThatAreNotTheSendersAreFound) {
  const auto size_is = [](uint32_t size) {
    return [size](int call, std::span<const Bytes> in) {
      if (call == 0) std::memcpy(in[0].data, &size, sizeof size);
    };
  };
  for (const uint32_t size : {0u, 8u, 1u << 20, 0xffffffffu}) {
    const auto errors = steps(2, toy_nonzeros, size_is(size));
    for (const std::string& error : errors) EXPECT_NE(error, "") << size;
  }
  expect_found(steps(2, toy_nonzeros, size_is(1u << 20)),
               "step 0, bucket 0: rank 0 announced 1048576 bytes", "at most");
}

/// A communicator that records the bytes of each reduction of gradients.
class WatchedReductions final : public Communicator {
 public:
  explicit WatchedReductions(Communicator& inner) : inner_(inner) {}

  const Roster& roster() const override { return inner_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override { return inner_.split(colour); }
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override {
    int64_t total = 0;
    for (const Bytes& slice : data) total += slice.bytes;
    if (op == ReduceOp::sum) bytes.push_back(total);  // the status is a maximum
    return inner_.all_reduce(data, dtype, op);
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return inner_.all_gather(out, in);
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return inner_.all_to_all(out, in);
  }
  PendingPtr exchange(std::span<const Exchange> messages) override {
    return inner_.exchange(messages);
  }
  PendingPtr barrier() override { return inner_.barrier(); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  void abort(const std::string& cause) override { inner_.abort(cause); }
  std::string hear_failure() override { return inner_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { inner_.on_progress(std::move(notify)); }

  std::vector<int64_t> bytes;

 private:
  Communicator& inner_;
};

float any_float(int rank, int64_t step, int segment, int64_t i) {
  const Philox noise(3, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  return static_cast<float>(normal(noise, static_cast<uint64_t>(100'000 * segment + i)));
}

/// A rank's results after a step: bytes of its reductions, gradients, and counted bytes and spans.
struct Reduced {
  std::vector<int64_t> bytes;
  std::vector<float> gradients;
  int64_t encoded = 0, sent = 0, received = 0;
  size_t wire_spans = 0;
};

std::vector<Reduced> reduce(int workers, const ReplicaOptions& options) {
  ThreadGroup group(workers, {});
  std::vector<Reduced> results(static_cast<size_t>(workers));
  const auto errors = run_ranks(group, [&](Communicator& communicator) {
    WatchedReductions watched(communicator);
    TestReplica replica(watched, options);
    replica.step(0, any_float);
    const StepCost& cost = replica.sync().cost();
    Reduced& result = results[static_cast<size_t>(communicator.rank())];
    result = {watched.bytes, replica.gradients(), cost.bytes_encoded, cost.bytes_sent,
              cost.bytes_received};
    result.wire_spans = replica.trace().spans(Lane::wire).size();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return results;
}

/// Dense segments, and messages that are sums, have the same bits and bytes in pieces as in one
/// piece, even if the workers' shares have few elements.
TEST(SlotWire, LargeReductionsTravelInPieces) {
  for (const bool compressed : {false, true}) {
    ReplicaOptions options;
    if (compressed) options = all_by(toy_scaled_sum);
    options.trace = {.first_step = 0, .steps = 1};
    for (const int64_t numel : {1, 2, 255, 511, 512, 10'007}) {
      options.shapes = {{numel}};
      for (const int workers : {1, 2, 3, 5}) {
        options.averaging.buckets.bucket_bytes = int64_t{1} << 40;
        const auto whole = reduce(workers, options);
        options.averaging.buckets.bucket_bytes = 1024;
        const auto pieces = reduce(workers, options);
        for (size_t rank = 0; rank < whole.size(); ++rank) {
          const Reduced &a = whole[rank], &b = pieces[rank];
          ASSERT_EQ(a.bytes.size(), 1u);
          EXPECT_EQ(a.gradients, b.gradients);
          EXPECT_EQ(a.encoded, b.encoded);
          EXPECT_EQ(a.sent, b.sent);
          EXPECT_EQ(a.received, b.received);
          EXPECT_EQ(a.wire_spans, b.wire_spans);
          int64_t total = 0;
          for (const int64_t bytes : b.bytes) {
            EXPECT_LT(bytes, 2 * 1024 + 8 * workers) << numel;
            EXPECT_TRUE(b.bytes.size() == 1 || bytes > 1024 - 8 * workers) << numel;
            total += bytes;
          }
          EXPECT_EQ(total, a.bytes[0]);
        }
      }
    }
  }
}

/// bucket_bytes = 0 makes each segment a bucket, and does not cut segments.
TEST(SlotWire, SegmentsByThemselvesAreNotCut) {
  ReplicaOptions options;
  options.shapes = {{3}, {10'007}};
  options.averaging.buckets.bucket_bytes = 0;
  EXPECT_EQ(reduce(2, options)[0].bytes, (std::vector<int64_t>{40'028, 12}));
}

}  // namespace
}  // namespace wisp
