// Tests of the memory that the comm side keeps, for every method, after a warm-up that sends nearly
// all elements at first.
#include "distributed/exchange/unit_memory.h"

#include <gtest/gtest.h>

#include <map>

#include "compression/forwarding_compressor.h"
#include "distributed/exchange/wire_header.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// A compressor that records the largest scratch of each unit, by the address of the unit's fields.
class Noting final : public ForwardingCompressor {
 public:
  using Scratch = std::map<const Field*, int64_t>;
  Noting(std::unique_ptr<Compressor> inner, Scratch* scratch)
      : ForwardingCompressor(std::move(inner)), scratch_(scratch) {}

  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    const int64_t bytes = ForwardingCompressor::scratch_bytes(spec, info);
    int64_t& most = (*scratch_)[spec.fields.data()];
    most = std::max(most, whole_fronts(std::max<int64_t>(bytes, 1)));  // rounded as in the pool
    return bytes;
  }

 private:
  Scratch* scratch_;
};

/// Bytes of rank 0.
struct Kept {
  int64_t wire = 0;     // outlets and the receive buffer
  int64_t scratch = 0;  // scratch of all units
  int64_t raw = 0;      // gradients
  int64_t bucket = 0;   // gradients of the largest bucket
};

Kept kept_by(const std::string& method, int workers) {
  Kept kept;
  run_workers(workers, {.threads = 1}, [&](Worker& worker) {
    Noting::Scratch scratch;
    ReplicaOptions options;
    options.shapes = {{160, 160}, {64, 300}, {100, 30}, {80, 80}};
    options.methods = [&] {
      std::vector<Method> methods;
      methods.push_back({method, std::make_unique<Noting>(
                                     make_method(method, "", {.workers = workers}), &scratch)});
      return methods;
    };
    options.averaging.buckets.bucket_bytes = 32 * 1024;
    options.averaging.ratio = [](double epoch) { return std::max(0.01, 0.9 - 0.1 * epoch); };
    TestReplica replica(worker.communicator, options);
    const int64_t before = replica.memory().used_bytes;
    for (int64_t step = 0; step < 10; ++step) replica.step(step, small_integers);
    if (worker.rank != 0) return;
    for (const auto& [unit, bytes] : scratch) kept.scratch += bytes;
    kept.wire = replica.memory().used_bytes - before - kept.scratch;
    for (const Bucket& bucket : replica.sync().cut().buckets) {
      kept.raw += bucket.raw_bytes;
      kept.bucket = std::max(kept.bucket, bucket.raw_bytes);
    }
  });
  return kept;
}

class Warm : public testing::TestWithParam<std::string> {};

// By the guard no unit sends more than its dense all-reduce, 2 (N - 1) / N of its bytes. A payload
// that goes to N - 1 ranks has at most 2 / N of its bytes, and so has each of the N - 1 received.
TEST_P(Warm, UpKeepsNoMoreThanTheGuardAllows) {
  for (const int workers : {1, 2, 4}) {
    SCOPED_TRACE(concat(workers, " workers"));
    const Kept kept = kept_by(GetParam(), workers);
    const int64_t fronts = 64 * kFront;  // room for headers and roundings
    EXPECT_LE(kept.wire, 2 * kept.raw + 2 * kept.bucket + fronts);
    // 11 times for gtopk on one worker, which merges lists of all elements; 4 times for the others
    EXPECT_LE(kept.scratch, (GetParam() == "gtopk" ? 12 : 4) * kept.raw);
  }
}

std::vector<std::string> methods_that_compress() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    if (name != "none") names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(UnitMemory, Warm, testing::ValuesIn(methods_that_compress()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace wisp
