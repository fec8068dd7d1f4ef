#include "compression/codec_bench.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

CodecResult bench(const std::string& method) {
  Config config;
  return bench_codec(method, config, 100'000, 0.01, 2, 0.0);
}

TEST(CodecBench, ReportsPayloadAndError) {
  const CodecResult half = bench("fp16");
  EXPECT_EQ(half.payload_bytes, 200'000);
  EXPECT_LT(half.rel_error, 0x1p-11);  // half a unit in the last place
  EXPECT_GT(half.rel_error, 0.0);
  const CodecResult dgc = bench("dgc");
  EXPECT_EQ(dgc.payload_bytes, 6 * 1000);
  // The largest 1 % of a normal distribution hold 9 % of its square: sqrt(0.91).
  EXPECT_NEAR(dgc.rel_error, 0.95, 0.02);
  EXPECT_EQ(dgc.threads, 2);
}

TEST(CodecBench, RefusesWhatCannotBeTimed) {
  EXPECT_EQ(error_of([] { bench("none"); }), "bench codec: method none encodes nothing");
  Config config;
  EXPECT_EQ(error_of([&] { bench_codec("dgc", config, 10, 0.0, 1, 0.0); }),
            "bench codec: ratio is 0, expected 0 < ratio <= 1");
}

}  // namespace
}  // namespace wisp
