#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "compression/code.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

std::unique_ptr<Compressor> block_topk(const std::string& sharing, int block_size,
                                       const std::string& more = "") {
  return make_method("block_topk", concat("compression.sharing = \"", sharing,
                                          "\"\ncompression.block_size = ", block_size, "\n", more));
}

/// The p-norms of blocks of `size` elements, to the power p.
std::vector<double> scores_of(const Floats& a, size_t size, double p) {
  std::vector<double> scores((a.size() + size - 1) / size, 0.0);
  for (size_t i = 0; i < a.size(); ++i)
    scores[i / size] += std::pow(std::fabs(static_cast<double>(a[i])), p);
  return scores;
}

std::vector<size_t> largest_blocks(const std::vector<double>& scores, size_t k) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(k);
  return order;
}

TEST(BlockTopk, FollowsAScalarModel) {
  constexpr int kWorkers = 3;
  constexpr int64_t kNumel = 1003;  // 125 blocks of 8 and one of 3, in three slices
  for (const std::string sharing : {"shared", "own"}) {
    for (const std::string norm : {"l1", "l2"}) {
      SCOPED_TRACE(sharing + ", " + norm);
      MethodRig rig(kWorkers, {joined_field({500, 300, 203}, 0)}, [&] {
        return block_topk(sharing, 8, concat("compression.score = \"", norm, "\""));
      });
      std::vector<Floats> a(kWorkers, Floats(kNumel, 0.0f));
      for (int64_t step = 0; step < 50; ++step) {
        std::vector<std::vector<double>> scores;
        std::vector<double> total(126, 0.0);
        for (int rank = 0; rank < kWorkers; ++rank) {
          Floats& own = a[static_cast<size_t>(rank)];
          const Floats g = noise(kNumel, step, rank);
          for (size_t i = 0; i < kNumel; ++i) {
            rig.gradient(rank)[i] = g[i];
            own[i] += g[i];
          }
          scores.push_back(scores_of(own, 8, norm == "l1" ? 1.0 : 2.0));
          for (size_t b = 0; b < total.size(); ++b) total[b] += scores.back()[b];
        }
        Floats sum(kNumel, 0.0f);
        for (size_t rank = 0; rank < kWorkers; ++rank) {
          for (const size_t b : largest_blocks(sharing == "own" ? scores[rank] : total, 13)) {
            for (size_t i = 8 * b; i < std::min<size_t>(8 * b + 8, kNumel); ++i) {
              sum[i] += a[rank][i];
              a[rank][i] = 0.0f;
            }
          }
        }
        rig.step(step_info(step, 0.1));
        for (int rank = 0; rank < kWorkers; ++rank) {
          // exact: the same operations in the same order
          ASSERT_EQ(Floats(rig.gradient(rank), rig.gradient(rank) + kNumel), sum) << step;
          const float* e = rig.state(rank, "residual").data<float>();
          ASSERT_EQ(Floats(e, e + kNumel), a[static_cast<size_t>(rank)]) << step;
        }
      }
    }
  }
}

TEST(BlockTopk, LosesNothing) {
  for (const char* sharing : {"shared", "own"}) {
    for (const char* values : {"f32", "f16", "bf16"}) {
      MethodRig rig(1, {joined_field({301, 99, 100})}, [&] {
        return block_topk(sharing, 16, concat("compression.values = \"", values, "\""));
      });
      Floats given(506, 0.0f), sent(506, 0.0f);
      for (int64_t step = 0; step < 40; ++step) {
        const Floats g = noise(506, step, 0);
        for (size_t i = 0; i < given.size(); ++i) {
          rig.gradient(0)[i] = g[i];
          given[i] += g[i];
        }
        for (const size_t gap : {301, 302, 303, 403, 404, 405}) given[gap] = 0.0f;
        rig.step(step_info(step, 0.1));
        for (size_t i = 0; i < sent.size(); ++i) sent[i] += rig.gradient(0)[i];
        for (const size_t gap : {301, 302, 303, 403, 404, 405}) sent[gap] = 0.0f;
      }
      for (size_t i = 0; i < given.size(); ++i) {
        // f32 rounding of 40 additions of numbers below 8, in three sums
        ASSERT_NEAR(sent[i] + rig.state(0, "residual").data<float>()[i], given[i], 5e-5f) << values;
      }
    }
  }
}

TEST(BlockTopk, SendsWhatTheLawSays) {
  const std::vector<Field> fields = two_fields(1000, 30, 7);
  const UnitSpec spec{fields, 1037};
  // 17 blocks of 64, of which 4 travel, and one block of 7
  const StepInfo info = step_info(0, 0.2);
  for (const auto& [values, dtype, size] :
       {std::tuple("f32", DType::f32, 4), {"f16", DType::f16, 2}, {"bf16", DType::bf16, 2}}) {
    const std::string toml = concat("compression.values = \"", values, "\"");
    const auto shared = block_topk("shared", 64, toml);
    EXPECT_EQ(shared->rounds(spec, info), 2);
    EXPECT_EQ(
        shared->message(spec, info, 0),
        (Message{.kind = Collective::all_reduce, .dtype = DType::f32, .bytes = 4 * (17 + 1)}));
    EXPECT_EQ(
        shared->message(spec, info, 1),
        (Message{.kind = Collective::all_reduce, .dtype = dtype, .bytes = size * (4 * 64 + 7)}));
    const auto own = block_topk("own", 64, toml);
    EXPECT_EQ(own->rounds(spec, info), 1);
    EXPECT_EQ(own->message(spec, info, 0), (Message{.kind = Collective::all_gather,
                                                    .bytes = 4 * (4 + 1) + size * (4 * 64 + 7)}));
  }
}

TEST(BlockTopk, LaysOutIdsAndValues) {
  UnitRig rig(layer_fields({7}), block_topk("own", 3));
  const Floats gradient = {1, -1, 1, 2, 2, -2, 5};
  std::copy(gradient.begin(), gradient.end(), rig.gradient());
  const PayloadBytes payload = rig.encode(step_info(0, 0.5));
  ASSERT_EQ(payload.size(), 4u * (2 + 6));
  uint32_t ids[2];
  Floats values(6);
  std::memcpy(ids, payload.data(), 8);
  std::memcpy(values.data(), payload.data() + 8, 24);
  EXPECT_EQ(ids[0], 1u);
  EXPECT_EQ(ids[1], 2u);
  EXPECT_EQ(values, (Floats{2, 2, -2, 5, 0, 0}));  // the last block is short
  rig.decode(step_info(0, 0.5), {payload, payload});
  EXPECT_EQ(Floats(rig.gradient(), rig.gradient() + 7), (Floats{0, 0, 0, 4, 4, -4, 10}));
  EXPECT_EQ(Floats(rig.residual(), rig.residual() + 7), (Floats{1, -1, 1, 0, 0, 0, 0}));
}

/// The block with the largest total score is no worker's own largest block.
TEST(BlockTopk, AgreesOnTheBlocksOfTheSum) {
  const std::vector<Floats> gradients = {{5, 0, 3, 1}, {0, -5, 3, 1}};
  for (const std::string sharing : {"shared", "own"}) {
    MethodRig rig(2, layer_fields({4}), [&] { return block_topk(sharing, 1); });
    for (int rank = 0; rank < 2; ++rank)
      std::copy_n(gradients[static_cast<size_t>(rank)].data(), 4, rig.gradient(rank));
    rig.step(step_info(0, 0.25));
    const Floats result(rig.gradient(1), rig.gradient(1) + 4);
    EXPECT_EQ(result, sharing == "own" ? (Floats{5, -5, 0, 0}) : (Floats{0, 0, 6, 0}));
  }
}

TEST(BlockTopk, TakesWhateverIsFinite) {
  for (const std::string sharing : {"shared", "own"}) {
    for (const char* norm : {"l1", "l2"}) {
      for (const float value : {0.0f, 1.0f, 1e-41f, 3e38f, -3e38f}) {
        for (const int64_t numel : {1, 2, 300}) {
          MethodRig rig(2, layer_fields({numel}), [&] {
            return block_topk(sharing, 16, concat("compression.score = \"", norm, "\""));
          });
          std::fill_n(rig.gradient(0), numel, value);
          rig.step(step_info(0, 0.3));
          int64_t sent = 0;
          for (int64_t i = 0; i < numel; ++i) {
            ASSERT_EQ(rig.gradient(1)[i] + rig.state(0, "residual").data<float>()[i], value);
            sent += rig.gradient(1)[i] != 0.0f ? 1 : 0;
          }
          if (value == 0.0f) continue;
          if (numel < 16) {
            EXPECT_EQ(sent, numel);
          } else {
            // 6 of 19 blocks travel; the last block has 12 elements
            EXPECT_TRUE(sent == 96 || sent == 92) << sent;
          }
        }
      }
    }
  }
}

TEST(BlockTopk, AddsUpWithoutOverflow) {
  for (const char* values : {"f16", "bf16"}) {
    MethodRig rig(3, layer_fields({40}), [&] {
      return block_topk("shared", 8, concat("compression.values = \"", values, "\""));
    });
    for (int rank = 0; rank < 3; ++rank) std::fill_n(rig.gradient(rank), 40, 3e38f);
    rig.step(step_info(0, 0.1));
    const float most = *std::max_element(rig.gradient(0), rig.gradient(0) + 40);
    EXPECT_TRUE(std::isfinite(most));
    EXPECT_GT(most, std::string(values) == "f16" ? 65000.0f : 3.3e38f);
  }
}

TEST(BlockTopk, KeepsItsResidualIfTheGradientIsNotFinite) {
  for (const char* sharing : {"shared", "own"}) {
    MethodRig rig(2, layer_fields({80}), [&] { return block_topk(sharing, 8); });
    std::fill_n(rig.state(0, "residual").data<float>(), 80, 3.0f);
    std::fill_n(rig.gradient(0), 80, std::numeric_limits<float>::infinity());
    std::fill_n(rig.gradient(1), 80, 1.0f);
    rig.unit(0).finite = false;
    rig.step(step_info(0, 0.1));
    EXPECT_EQ(std::count(rig.gradient(0), rig.gradient(0) + 80, 1.0f), 8);
    EXPECT_EQ(std::count(rig.gradient(0), rig.gradient(0) + 80, 0.0f), 72);
    const float* kept = rig.state(0, "residual").data<float>();
    EXPECT_EQ(std::count(kept, kept + 80, 3.0f), 80);
  }
}

TEST(BlockTopk, WorksOnALateStream) {
  UnitRig now(layer_fields({9000, 400}), block_topk("own", 32));
  UnitRig later(layer_fields({9000, 400}), block_topk("own", 32));
  TestContext late({.late = true});
  const Floats g = noise(now.unit.gradient.numel(), 0, 0);
  for (size_t i = 0; i < g.size(); ++i) now.gradient()[i] = later.gradient()[i] = g[i];
  const StepInfo info = step_info(0, 0.1);
  const PayloadBytes payload = now.encode(info);
  const Tensor scratch({later.compressor->scratch_bytes(later.unit.spec, info)}, DType::u8);
  later.unit.scratch = scratch.raw();
  Tensor out({static_cast<int64_t>(payload.size())}, DType::u8);
  const Outlet outlet{out.raw(), out.bytes()};
  later.compressor->encode(late.context, later.unit, info, 0, {&outlet, 1});
  late.stream.synchronize();
  EXPECT_EQ(PayloadBytes(out.raw(), out.raw() + out.bytes()), payload);
  int64_t complaint = 0;
  const Payload damaged{2, out.raw(), out.bytes(), &complaint};
  reinterpret_cast<uint32_t*>(out.raw())[1] = 282;
  later.compressor->decode(late.context, later.unit, info, 0, {&damaged, 1});
  late.stream.synchronize();
  EXPECT_EQ(complaint_in(complaint),
            "the payload of rank 2: field 0 has entry 1 after its last element");
}

TEST(BlockTopk, RefusesDamagedPayloads) {
  UnitRig rig(layer_fields({70}), block_topk("own", 8));
  PayloadBytes payload = rig.encode(step_info(0, 0.2));
  EXPECT_EQ(error_of([&] { rig.decode(step_info(0, 0.2), {PayloadBytes(5)}); }),
            "block-top-k: the payload of rank 0 has 5 bytes, expected 72");
  std::memcpy(payload.data() + 4, payload.data(), 4);
  EXPECT_EQ(error_of([&] { rig.decode(step_info(0, 0.2), {payload}); }),
            "the payload of rank 0: field 0 has entry 1 out of order");
  UnitRig shared(layer_fields({70}), block_topk("shared", 8));
  EXPECT_EQ(error_of([&] { shared.decode(step_info(0, 0.2), {PayloadBytes(8)}); }),
            "block-top-k: 8 bytes of scores, expected 36");
}

TEST(BlockTopk, SendsItsOwnBlocksWhereNobodyAgrees) {
  Config config;
  const auto code =
      CodeRegistry::instance().find("code", "block_topk").make(config, {.alone = true});
  const std::vector<Field> fields = layer_fields({1000});
  EXPECT_EQ(code->agreement({fields, 1000}, step_info(0, 0.1)).kind, Collective::none);
  EXPECT_EQ(error_of([] {
              Config shared = Config::from_text("compression.sharing = \"shared\"", "a.toml");
              CodeRegistry::instance().find("code", "block_topk").make(shared, {.alone = true});
            }),
            "a.toml:1: neighbours in gossip cannot agree on the same blocks; use "
            "compression.sharing = \"own\"");
}

TEST(BlockTopk, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { block_topk("own", 0); }),
            "test.toml:2: compression.block_size is 0, expected more than 0");
  EXPECT_EQ(error_of([] { block_topk("own", 4, "compression.score = \"max\""); }),
            "test.toml:3: compression.score is 'max', expected l1 or l2");
  EXPECT_TRUE(block_topk("own", 4)->traits().sparse);
  EXPECT_TRUE(block_topk("own", 4)->traits().dense_1d);
}

}  // namespace
}  // namespace wisp
