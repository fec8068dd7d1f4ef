#include "distributed/bench/codec_bench.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <set>

#include "core/loops/parallel_teams.h"
#include "core/random.h"
#include "distributed/bench/rehearsal.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// 2, unless the environment limits teams.
const int kThreads = std::min(2, omp_get_thread_limit());

CodecResult bench(const std::string& method,
                  CodecBenchOptions options = {.numel = 20'000,
                                               .ratio = 0.01,
                                               .threads = kThreads,
                                               .seconds = 0.0},
                  const std::string& toml = "") {
  const auto make = [&](int workers) {
    Config config = Config::from_text(toml, "test");
    return CompressorRegistry::instance()
        .find("compression method", method)
        .make(config, {.workers = workers, .momentum = 0.9});
  };
  return bench_codec(method, make, options);
}

TEST(CodecBench, ReportsPayloadAndError) {
  const CodecResult half = bench("fp16");
  EXPECT_EQ(half.payload_bytes, 40'000);
  EXPECT_LT(half.rel_error, 0x1p-10);  // half an ulp for each of four payloads and for their sum
  EXPECT_GT(half.rel_error, 0.0);
  EXPECT_GT(half.cosine, 0.999);
  EXPECT_EQ(half.state_bytes, 0);
  const CodecResult dgc =
      bench("dgc", {.numel = 20'000, .ratio = 0.001, .threads = kThreads, .seconds = 0.0});
  EXPECT_EQ(dgc.payload_bytes, 6 * 20);
  EXPECT_EQ(dgc.state_bytes, 80'000);
  EXPECT_LT(dgc.rel_error, 1.0);
  EXPECT_GT(dgc.rel_error, 0.9);
  EXPECT_EQ(dgc.options.threads, kThreads);
  EXPECT_EQ(bench("signsgd").rounds, 2);
}

/// Like an embedding's gradient: 5,000 elements may travel, but fewer are not zero.
TEST(CodecBench, LeavesRowsZero) {
  const CodecResult topk = bench(
      "topk",
      {.numel = 100'000, .ratio = 0.05, .zero_rows = 0.99, .threads = kThreads, .seconds = 0.0});
  EXPECT_GT(topk.payload_bytes, 0);
  EXPECT_LT(topk.payload_bytes, 8 * 5'000 / 2);
  EXPECT_NEAR(topk.rel_error, 0.0, 1e-6);  // every nonzero element travels
}

TEST(CodecBench, TimesEveryMethod) {
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name == "none") continue;
    const CodecResult result =
        bench(name, {.numel = 6'000, .ratio = 0.05, .threads = 1, .seconds = 0.0});  // sampled
    EXPECT_GT(result.encode_ms, 0.0) << name;
    EXPECT_GT(result.decode_limit_ms, 0.0) << name;
    EXPECT_GT(result.cosine, 0.0) << name;
  }
}

class DeviceCodecBench : public DeviceTest {};

/// A GPU's matrix products differ in their last bits, so only the emulated device runs powersgd.
TEST_F(DeviceCodecBench, GivesTheCpusFigures) {
  const std::string summed = "compression.scaler = \"shared\"";
  std::vector<std::pair<std::string, std::string>> methods = {
      {"dgc", ""},  {"topk", ""},  {"qsgd", ""},  {"int8", summed},
      {"fp16", ""}, {"gtopk", ""}, {"onebit", ""}};
  if (std::string(device_kind()) == "emulated") methods.emplace_back("powersgd", "");
  for (const auto& [method, toml] : methods) {
    // A GPU's team reads in batches what is longer, as dgc's sample of 200,000 elements.
    const bool batches = method == "dgc" && std::string(device_kind()) == "cuda";
    CodecBenchOptions options{
        .numel = batches ? 200'000 : 6'000, .ratio = 0.01, .threads = 1, .seconds = 0.0};
    const CodecResult cpu = bench(method, options, toml);
    options.device = first_device();
    const CodecResult device = bench(method, options, toml);
    EXPECT_EQ(device.rounds, cpu.rounds) << method;
    EXPECT_EQ(device.payload_bytes, cpu.payload_bytes) << method;
    EXPECT_EQ(device.state_bytes, cpu.state_bytes) << method;
    EXPECT_EQ(device.rel_error, cpu.rel_error) << method;
    EXPECT_EQ(device.cosine, cpu.cosine) << method;
    EXPECT_EQ(device.bias, cpu.bias) << method;
    for (const double ms : {device.encode_ms, device.decode_ms, device.decode4_ms,
                            device.encode_limit_ms, device.decode_limit_ms})
      EXPECT_GT(ms, 0.0) << method;
  }
}

/// Fields and gradients of a rehearsal by three ranks.
struct Case {
  std::vector<Field> fields;
  double ratio = 0.1;
  int64_t zeros_from = 0, zeros_to = 0;  // arena elements that are zero, but for a few
};

/// For each of two steps and each rank: the bytes sent in each round, then the rank's gradient.
using Sent = std::vector<std::vector<std::byte>>;
Sent sent_by(const std::string& method, const std::string& toml, const Case& drawn, Device device) {
  Sent sent;
  Rehearsal rehearsal(
      3, drawn.fields, [&] { return make_method(method, toml); }, false, device);
  const Stream& stream = rehearsal.context().stream;
  for (int64_t step = 0; step < 2; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      write_from_host(stream, rehearsal.unit(rank).gradient, [&](const Tensor& gradient) {
        const Philox random(1, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
        for (int64_t i = 0; i < gradient.numel(); ++i) {
          const bool zero = drawn.zeros_from <= i && i < drawn.zeros_to && i % 70'000 != 0;
          gradient.data<float>()[i] = zero ? 0.0f : random.nearly_normal(static_cast<uint64_t>(i));
        }
      });
    }
    rehearsal.step({.step = step, .applied = step, .ratio = drawn.ratio});
    for (int rank = 0; rank < 3; ++rank) {
      for (int round = 0; round < rehearsal.rounds(); ++round)
        sent.push_back(rehearsal.sent(rank, round));
      const Tensor gradient = fetch(stream, rehearsal.unit(rank).gradient);
      sent.emplace_back(gradient.raw(), gradient.raw() + gradient.bytes());
    }
  }
  return sent;
}

/// A GPU skips the methods that send results of its libraries, whose last bits differ.
TEST_F(DeviceCodecBench, SendsTheCpusBytes) {
  std::set<std::string> left_out{"none"};
  if (std::string(device_kind()) == "cuda") left_out.insert({"powersgd", "acpsgd", "fft"});
  for (const auto& [method, entry] : CompressorRegistry::instance().entries()) {
    if (left_out.contains(method)) continue;
    const Case unit{layer_fields({700, 30})};
    EXPECT_TRUE(sent_by(method, "", unit, {}) == sent_by(method, "", unit, first_device()))
        << method;
  }
}

/// Several teams of a device share a large field: here the sample and the 10,000 entries of the
/// first one. Runs of 16 bits cross its zeros by escapes. Teams come in a drawn order.
TEST_F(DeviceCodecBench, SendsTheCpusBytesOfFieldsThatTeamsShare) {
  Case unit{two_fields(300'000, 100'000, 9'000), 0.025, 20'000, 250'000};
  unit.fields.push_back({{{410'000, 150'000}}, 150'000, 3});
  std::vector<std::pair<std::string, std::string>> methods{{"dgc", ""}, {"oktopk", ""}};
  for (const char* indices : {"runs16", "u32", "gamma", "bitmap"}) {
    for (const char* values : {"f32", "natural"}) {
      methods.emplace_back(
          "topk", concat("[compression]\nvalues = '", values, "'\nindices = '", indices, "'"));
    }
  }
  const ShuffledTeams shuffled(7);
  for (const auto& [method, toml] : methods) {
    EXPECT_TRUE(sent_by(method, toml, unit, {}) == sent_by(method, toml, unit, first_device()))
        << method << "\n"
        << toml;
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
