#include "distributed/bench/codec_bench.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

CodecResult bench(const std::string& method,
                  CodecBenchOptions options = {
                      .numel = 100'000, .ratio = 0.01, .threads = 2, .seconds = 0.0}) {
  const auto make = [&](int workers) {
    Config config;
    return CompressorRegistry::instance()
        .find("compression method", method)
        .make(config, {.workers = workers, .momentum = 0.9});
  };
  return bench_codec(method, make, options);
}

TEST(CodecBench, ReportsPayloadAndError) {
  const CodecResult half = bench("fp16");
  EXPECT_EQ(half.payload_bytes, 200'000);
  EXPECT_LT(half.rel_error, 0x1p-10);  // half a unit in the last place, four times, and of the sum
  EXPECT_GT(half.rel_error, 0.0);
  EXPECT_GT(half.cosine, 0.999);
  EXPECT_EQ(half.state_bytes, 0);
  const CodecResult dgc =
      bench("dgc", {.numel = 100'000, .ratio = 0.001, .threads = 2, .seconds = 0.0});
  EXPECT_EQ(dgc.payload_bytes, 6 * 100);
  EXPECT_EQ(dgc.state_bytes, 400'000);
  EXPECT_LT(dgc.rel_error, 1.0);
  EXPECT_GT(dgc.rel_error, 0.9);
  EXPECT_EQ(dgc.options.threads, 2);
  EXPECT_EQ(bench("signsgd").rounds, 2);
}

/// As of an embedding: 10,000 elements may travel, fewer are there.
TEST(CodecBench, LeavesRowsZero) {
  const CodecResult topk =
      bench("topk",
            {.numel = 1'000'000, .ratio = 0.01, .zero_rows = 0.998, .threads = 2, .seconds = 0.0});
  EXPECT_GT(topk.payload_bytes, 0);
  EXPECT_LT(topk.payload_bytes, 8 * 10'000 / 2);
  EXPECT_NEAR(topk.rel_error, 0.0, 1e-6);  // all that is not zero travels
}

TEST(CodecBench, TimesEveryMethod) {
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name == "none") continue;
    const CodecResult result =
        bench(name, {.numel = 10'000, .ratio = 0.05, .threads = 1, .seconds = 0.0});
    EXPECT_GT(result.encode_ms, 0.0) << name;
    EXPECT_GT(result.decode_limit_ms, 0.0) << name;
    EXPECT_GT(result.cosine, 0.0) << name;
  }
}

TEST(CodecBench, RefusesWhatCannotBeTimed) {
  EXPECT_EQ(error_of([] { bench("none"); }), "bench codec: method none encodes nothing");
  EXPECT_EQ(error_of([] { bench("dgc", {.numel = 10, .ratio = 0.0}); }),
            "bench codec: ratio is 0, expected 0 < ratio <= 1");
  EXPECT_EQ(error_of([] { bench("dgc", {.numel = 10, .zero_rows = 1.0}); }),
            "bench codec: zero_rows is 1, expected 0 <= zero_rows < 1");
}

}  // namespace
}  // namespace wisp
