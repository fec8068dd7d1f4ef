// Tests of the makers: a method made by its options is the registry's.
#include "compression/methods/methods.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr int kMakers = 3;  // workers
const LocalMomentum kLocal{.momentum = 0.9, .weight_decay = 1e-4};

/// Each method by the defaults of its options.
std::map<std::string, Rehearsal::Make> makers() {
  std::map<std::string, Rehearsal::Make> all = {{"acpsgd", [] { return make_acpsgd(); }},
                                                {"dgc", [] { return make_dgc({.local = kLocal}); }},
                                                {"gtopk", [] { return make_gtopk(); }},
                                                {"oktopk", [] { return make_oktopk(); }},
                                                {"onebit", [] { return make_onebit(); }},
                                                {"onebit_adam", [] { return make_onebit_adam(); }},
                                                {"powersgd", [] { return make_powersgd(); }},
                                                {"signsgd", [] { return make_signsgd(); }},
                                                {"signum", [] { return make_signum(kLocal); }},
                                                {"variance", [] { return make_variance(); }}};
  const auto code = [&](const std::string& name, const auto& make, Feedback published) {
    all[name] = [=] { return with_feedback(name, make(), {.kind = published}); };
  };
  code(
      "block_topk", [] { return make_block_topk(); }, Feedback::ef);
  code(
      "ef_signsgd", [] { return make_ef_signsgd(); }, Feedback::ef);
  code(
      "fft", [] { return make_fft(); }, Feedback::ef);
  code(
      "random_block", [] { return make_random_block(); }, Feedback::ef);
  code(
      "random_k", [] { return make_random_k(); }, Feedback::ef);
  code(
      "threshold", [] { return make_threshold(); }, Feedback::ef);
  code(
      "topk", [] { return make_topk(); }, Feedback::ef);
  code(
      "bf16", [] { return make_bf16(); }, Feedback::none);
  code(
      "fp16", [] { return make_fp16(); }, Feedback::none);
  code(
      "int4", [] { return make_int4({.workers = kMakers}); }, Feedback::none);
  code(
      "int8", [] { return make_int8({.workers = kMakers}); }, Feedback::none);
  code(
      "natural", [] { return make_natural(); }, Feedback::none);
  code(
      "qsgd", [] { return make_qsgd(); }, Feedback::none);
  code(
      "terngrad", [] { return make_terngrad({.integers = {.workers = kMakers}}); }, Feedback::none);
  return all;
}

std::unique_ptr<Compressor> registered_by(const std::string& name) {
  return make_method(name, "",
                     {.workers = kMakers,
                      .momentum = kLocal.momentum,
                      .weight_decay = kLocal.weight_decay,
                      .beta2 = 0.999});
}

bool same_traits(const Traits& a, const Traits& b) {
  return a.momentum == b.momentum && a.decay == b.decay && a.result == b.result &&
         a.scopes == b.scopes && a.dense_1d == b.dense_1d && a.squares == b.squares &&
         a.clipping == b.clipping && a.sparse == b.sparse && a.drawn == b.drawn &&
         a.represents_zero == b.represents_zero;
}

/// The bytes that each rank sends in a step, and the results.
std::vector<std::vector<std::byte>> bytes_of(MethodRig& rig, int64_t step) {
  for (int rank = 0; rank < kMakers; ++rank) {
    const int64_t numel = rig.unit(rank).gradient.numel();
    const Floats g = noise(numel, step, rank);
    for (int64_t i = 0; i < numel; ++i) {
      rig.gradient(rank)[i] = g[static_cast<size_t>(i)];
      rig.square(rank)[i] = rig.gradient(rank)[i] * rig.gradient(rank)[i];
      if (step == 0) rig.weight(rank)[i] = 0.1f * static_cast<float>(i % 7 - 3);
    }
  }
  rig.step(step_info(step, 0.05));
  std::vector<std::vector<std::byte>> bytes;
  for (int rank = 0; rank < kMakers; ++rank) {
    for (int round = 0; round < rig.rounds(); ++round) bytes.push_back(rig.sent(rank, round));
    const Tensor& result = rig.unit(rank).gradient;
    bytes.emplace_back(result.raw(), result.raw() + result.bytes());
  }
  return bytes;
}

TEST(Methods, MadeByOptionsSendTheBytesOfTheRegistrys) {
  const auto all = makers();
  std::vector<Field> fields = layer_fields({300, 64 * 9});
  fields[1].rows = 64;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name == "none") continue;
    SCOPED_TRACE(name);
    ASSERT_EQ(all.count(name), 1u) << "has no maker";
    MethodRig made(kMakers, fields, all.at(name));
    MethodRig registered(kMakers, fields, [&] { return registered_by(name); });
    EXPECT_TRUE(same_traits(made.compressor(0).traits(), registered.compressor(0).traits()));
    for (const int64_t update : {0, 100, 511, 512, 99'999, 100'000})
      EXPECT_EQ(made.compressor(0).started({.applied = update}),
                registered.compressor(0).started({.applied = update}));
    for (int64_t step = 0; step < 3; ++step)
      EXPECT_EQ(bytes_of(made, step), bytes_of(registered, step)) << "step " << step;
  }
}

/// The text of the error that `make` throws.
template <class Make>
std::string refused(const Make& make) {
  return error_of([&] { make(); });
}

/// An option out of range, given by a program or by a configuration's first line.
struct WrongOption {
  std::string method, toml, message;  // message: of the maker, without a place
  CompressorSetup setup = {};
};

TEST(Methods, RefuseOptionsOutOfRangeWithTheTextOfTheConfigurations) {
  const LocalMomentum nesterov{.momentum = 0.9, .nesterov = true};
  const CompressorSetup nesterov_setup{.momentum = 0.9, .nesterov = true};
  const WrongOption all[] = {
      {"qsgd", "compression.levels = 200", refused([] { make_qsgd({.levels = 200}); })},
      {"qsgd", "compression.group = 100", refused([] { make_qsgd({.group = 100}); })},
      {"threshold", "compression.threshold = 0.0",
       refused([] { make_threshold({.threshold = 0}); })},
      {"block_topk", "compression.block_size = 0",
       refused([] { make_block_topk({.block_size = 0}); })},
      {"fft", "compression.range_bits = 40", refused([] { make_fft({.bits = 40}); })},
      {"terngrad", "compression.clip = -1.0", refused([] { make_terngrad({.clip = -1}); })},
      {"natural", "compression.bits = 7", refused([] { make_natural(7); })},
      {"oktopk", "compression.step_factor = 0.5",
       refused([] { make_oktopk({.step_factor = 0.5}); })},
      {"oktopk", "compression.start_after = -1", refused([] { make_oktopk({.start_after = -1}); })},
      {"onebit", "compression.start_after = -1", refused([] { make_onebit({.start_after = -1}); })},
      {"acpsgd", "compression.start_after = -1", refused([] { make_acpsgd({.start_after = -1}); })},
      {"variance", "compression.alpha = 0.5", refused([] { make_variance({.alpha = 0.5}); })},
      {"variance", "compression.zeta = 0.0", refused([] { make_variance({.zeta = 0}); })},
      {"acpsgd", "compression.rank = 0", refused([] { make_acpsgd({.rank = 0}); })},
      {"acpsgd", "compression.min_rate = -1.0", refused([] { make_acpsgd({.min_rate = -1}); })},
      {"acpsgd", "compression.feedback = 'ef21'",
       refused([] { make_acpsgd({.feedback = {.kind = Feedback::ef21}}); })},
      {"powersgd", "compression.power_iterations = 0",
       refused([] { make_powersgd({.iterations = 0}); })},
      {"signum", "optimizer.nesterov = true", refused([&] { make_signum(nesterov); }),
       nesterov_setup},
      {"onebit_adam", "compression.freeze_step = 0",
       refused([] { make_onebit_adam({.freeze_step = 0}); })},
      {"topk", "compression.feedback = 'ef21_sgdm'", refused([&] {
         with_feedback("topk", make_topk(), {.kind = Feedback::ef21_sgdm, .local = nesterov});
       }),
       nesterov_setup},
      {"topk", "compression.momentum_correction = true\ncompression.feedback = 'ef21'", refused([] {
         with_feedback("topk", make_topk(), {.kind = Feedback::ef21, .correction = true});
       })}};
  EXPECT_EQ(all[0].message, "compression.levels is 200, expected 1 to 127");
  for (const WrongOption& wrong : all)
    EXPECT_EQ(refused([&] { make_method(wrong.method, wrong.toml, wrong.setup); }),
              "test.toml:1: " + wrong.message);
}

/// A configuration cannot give these.
TEST(Methods, RefuseOptionsThatOnlyAProgramCanGetWrong) {
  EXPECT_EQ(refused([] { make_random_block({.rank = -1}); }),
            "random_block: rank is -1, expected 0 or more");
  const std::string format = "values on the wire are f64, expected f32, f16 or bf16";
  EXPECT_EQ(refused([] { make_random_k({.values = DType::f64}); }), format);
  EXPECT_EQ(refused([] { make_block_topk({.values = DType::f64}); }), format);
  EXPECT_EQ(refused([] { make_powersgd({.matrices = {.values = DType::f64}}); }), format);
  const std::string ratio = "least_ratio is 0, expected 0 < least_ratio <= 1";
  EXPECT_EQ(refused([] { make_topk({.least_ratio = 0}); }), ratio);
  EXPECT_EQ(refused([] { make_threshold({.least_ratio = 0}); }), ratio);
  EXPECT_EQ(refused([] { make_block_topk({.least_ratio = 0}); }), ratio);
  EXPECT_EQ(refused([] { make_random_k({.least_ratio = 0}); }), ratio);
  const std::string momentum = "a worker's own momentum is 1, expected 0 <= momentum < 1";
  EXPECT_EQ(refused([] { make_dgc({.local = {.momentum = 1}}); }), momentum);
  EXPECT_EQ(refused([] { make_signum({.momentum = 1}); }), momentum);
  EXPECT_EQ(refused([] { with_feedback("topk", make_topk(), {.local = {.momentum = 1}}); }),
            momentum);
  EXPECT_EQ(refused([] { make_dgc({.local = {.weight_decay = -1}}); }),
            "a worker's own weight decay is -1, expected 0 or more");
  EXPECT_EQ(refused([] { make_onebit_adam({.beta2 = 1}); }),
            "onebit_adam: beta1 and beta2 are 0.9 and 1, expected numbers in [0, 1)");
  EXPECT_EQ(refused([] { make_int8({.workers = 0}); }), "int8: 0 workers, expected 1 or more");
}

TEST(Methods, MaskOnlyWhereElementsAreLeftOut) {
  const FeedbackOptions corrected{
      .kind = Feedback::ef, .correction = true, .masking = true, .local = kLocal};
  UnitRig rig(layer_fields({100}), with_feedback("int8", make_int8(), corrected));
  for (int64_t i = 0; i < 100; ++i) rig.gradient()[i] = 1.0f;
  rig.encode({});
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(rig.momentum()[i], 1.0f);
}

}  // namespace
}  // namespace wisp
