// Tests of errors for a wrong configuration, and for a worker that fails during a run.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "apps/interchange/exchange.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/io/checkpoint.h"
#include "layers/linear.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_cifar.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

// ---------------------------------------------------------------- failing components

/// The phase `in` and the rank in which a component throws, in step 1.
struct FailureOptions {
  std::string in;
  int64_t rank = 0;
  void here(const std::string& phase, int my_rank, int64_t step) const {
    WISP_CHECK(phase != in || my_rank != rank || step != 1, "told to fail in ", phase);
  }
};

class FailingModel final : public Model {
 public:
  FailingModel(FailureOptions failure, const Facts& facts)
      : failure_(std::move(failure)), layer_(facts.inputs[0].sample.numel(), facts.classes) {
    child("layer", layer_);
  }
  Step forward(Context& context, const Batch& batch, const Carry&) override {
    failure_.here("forward", context.rank, context.step);
    const Tensor& input = batch.inputs[0];
    const int64_t rows = input.shape()[0];
    const Variable logits = layer_(reshape(Variable(context, input), {rows, input.numel() / rows}));
    const Variable same =
        record("same", logits.value(), {logits},
               [this, rank = context.rank, step = context.step](const Tensor& dy, Inputs& in) {
                 failure_.here("backward", rank, step);
                 const GradSlot slot = in.slot(0);
                 std::memcpy(slot.into.raw(), dy.raw(), static_cast<size_t>(dy.bytes()));
               });
    return {cross_entropy(same, batch.targets), logits};
  }

 private:
  FailureOptions failure_;
  Linear layer_;
};

/// A compressor that sends dense f32 sums and throws in a phase.
class FailingCompressor final : public Compressor {
 public:
  FailingCompressor(FailureOptions failure, Traits traits)
      : failure_(std::move(failure)), traits_(std::move(traits)) {}
  Traits traits() const override { return traits_; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override { return {}; }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    failure_.here("plan", info.rank, info.step);
    const bool differs =
        failure_.in == "collective" && info.rank == failure_.rank && info.step == 1;
    return {.kind = Collective::all_gather, .bytes = 4 * spec.numel + (differs ? 4 : 0)};
  }
  void encode(Context&, Unit&, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    failure_.here("encode", info.rank, info.step);
    std::memset(outlets[0].data, 0, static_cast<size_t>(outlets[0].capacity));
  }
  void decode(Context&, Unit&, const StepInfo& info, int, std::span<const Payload>) override {
    failure_.here("decode", info.rank, info.step);
  }

 private:
  FailureOptions failure_;
  Traits traits_;
};

const ModelRegistration model_registration("failing", "test: throws when told to",
                                           [](Config& config, const Facts& facts) {
                                             FailureOptions failure;
                                             config.bind("model.fail_in", failure.in, "phase");
                                             config.bind("model.fail_rank", failure.rank, "rank");
                                             return std::make_unique<FailingModel>(failure, facts);
                                           });

const CompressorRegistration failing_registration(
    "failing", "test: throws when told to", [](Config& config, const CompressorSetup&) {
      FailureOptions failure;
      config.bind("compression.fail_in", failure.in, "phase");
      config.bind("compression.fail_rank", failure.rank, "rank");
      return std::make_unique<FailingCompressor>(failure, Traits{});
    });

const CompressorRegistration twice_registration("momentum_twice",
                                                "test: keeps a momentum, yet leaves gradients",
                                                [](Config&, const CompressorSetup&) {
                                                  return std::make_unique<FailingCompressor>(
                                                      FailureOptions{},
                                                      Traits{.momentum = Home::compressor});
                                                });

const CompressorRegistration decay_registration(
    "weight_decay_twice", "test: decays before it sends, yet leaves gradients",
    [](Config&, const CompressorSetup&) {
      return std::make_unique<FailingCompressor>(FailureOptions{},
                                                 Traits{.decay = Home::compressor});
    });

const CompressorRegistration replaced_registration(
    "momentum_replaced", "test: keeps the momentum and leaves it",
    [](Config&, const CompressorSetup&) {
      return std::make_unique<FailingCompressor>(
          FailureOptions{}, Traits{.momentum = Home::compressor, .result = UpdateRule::momentum});
    });

const CompressorRegistration never_registration("momentum_never",
                                                "test: leaves updates without a momentum",
                                                [](Config&, const CompressorSetup&) {
                                                  return std::make_unique<FailingCompressor>(
                                                      FailureOptions{},
                                                      Traits{.result = UpdateRule::update});
                                                });

// ---------------------------------------------------------------- configuration

std::string refusal(const Overrides& overrides) {
  return error_of([&] { Prepared run(tiny_config(overrides)); });
}

TEST(BadConfig, UnknownKeySuggestsTheNearest) {
  EXPECT_EQ(refusal({"optimizer.momentun=0.9"}),
            "command line: unknown key 'optimizer.momentun'; did you mean 'optimizer.momentum'?");
  const std::string in_file = error_of(
      [] { Prepared run(Config::from_text("workers = 2\n[train]\nbach = 8\n", "my.toml")); });
  EXPECT_EQ(in_file, "my.toml:3: unknown key 'train.bach'; did you mean 'train.batch'?");
}

TEST(BadConfig, WrongTypeSaysBoth) {
  const std::string error = refusal({"workers=two"});
  EXPECT_NE(error.find("workers is a string (\"two\"), expected integer"), std::string::npos)
      << error;
}

TEST(BadConfig, UnknownNamesListTheKnown) {
  for (const auto& [key, known] :
       std::vector<std::pair<std::string, std::string>>{{"compression.method", "dgc"},
                                                        {"model.name", "resnet_cifar"},
                                                        {"data.name", "cifar10"},
                                                        {"schedule.kind", "cosine"}}) {
    const std::string error = refusal({key + "=nonesuch"});
    EXPECT_NE(error.find("nonesuch"), std::string::npos) << error;
    EXPECT_NE(error.find(key), std::string::npos) << error;
    EXPECT_NE(error.find(known), std::string::npos) << error;
  }
}

TEST(BadConfig, RatioLiesAboveZeroUpToOne) {
  for (const char* method : {"topk", "dgc"}) {
    for (const char* ratio : {"0", "2", "-0.1"}) {
      const std::string error = refusal(
          {std::string("compression.method=") + method, std::string("compression.ratio=") + ratio});
      EXPECT_EQ(error, std::string("command line: compression.ratio is ") + ratio +
                           ", expected 0 < ratio <= 1");
    }
  }
}

TEST(BadConfig, MomentumHasOneHome) {
  EXPECT_EQ(refusal({"compression.method=dgc", "compression.momentum=0.5"}),
            "command line: compression.momentum and optimizer.momentum = 0.9 (optimizer.momentum) "
            "set the same thing; method dgc takes the value of the optimizer: remove "
            "compression.momentum");
  EXPECT_EQ(refusal({"compression.method=momentum_twice"}),
            "method momentum_twice applies momentum by itself and the optimizer would apply "
            "optimizer.momentum = 0.9 (optimizer.momentum) once more; set it to 0");
  EXPECT_EQ(refusal({"compression.method=momentum_twice", "optimizer.momentum=0"}), "no error");
  EXPECT_EQ(refusal({"compression.method=momentum_never"}),
            "method momentum_never returns updates instead of gradients, so neither the method nor "
            "the optimizer would apply optimizer.momentum = 0.9 (optimizer.momentum); set it to 0");
}

/// A key that would change nothing is refused, not ignored.
TEST(BadConfig, MomentumIsCorrectedWhereACodeStandsAlone) {
  for (const std::string method : {"powersgd", "acpsgd", "onebit", "dgc"}) {
    const std::string said =
        refusal({"compression.method=" + method, "compression.momentum_correction=true"});
    EXPECT_NE(said.find("compression.momentum_correction means nothing"), std::string::npos)
        << said;
  }
  EXPECT_EQ(refusal({"compression.method=qsgd", "compression.momentum_correction=true"}),
            "no error");
  const std::string said = refusal({"compression.method=qsgd", "compression.masking=false"});
  EXPECT_NE(said.find("compression.masking means nothing"), std::string::npos) << said;
}

TEST(BadConfig, WeightDecayHasOneHome) {
  EXPECT_EQ(refusal({"compression.method=dgc", "compression.weight_decay=0.1"}),
            "command line: compression.weight_decay and optimizer.weight_decay = 0.001 "
            "(tiny.toml:11) set the same thing; method dgc takes the value of the optimizer: "
            "remove compression.weight_decay");
  EXPECT_EQ(
      refusal({"compression.method=weight_decay_twice"}),
      "method weight_decay_twice applies weight_decay by itself and the optimizer would apply "
      "optimizer.weight_decay = 0.001 (tiny.toml:11) once more; set it to 0");
  EXPECT_EQ(refusal({"compression.method=momentum_never", "optimizer.momentum=0"}),
            "method momentum_never returns updates instead of gradients, so neither the method nor "
            "the optimizer would apply optimizer.weight_decay = 0.001 (tiny.toml:11); set it to 0");
  for (const char* method : {"weight_decay_twice", "momentum_never"})
    EXPECT_EQ(refusal({concat("compression.method=", method), "optimizer.momentum=0",
                       "optimizer.weight_decay=0"}),
              "no error");
}

TEST(BadConfig, AMethodThatOwnsTheMomentumKnowsTheOptimizer) {
  EXPECT_EQ(refusal({"compression.method=dgc", "optimizer.kind=adamw"}),
            "command line: method dgc returns finished updates instead of gradients, which adamw "
            "cannot use; use optimizer.kind = \"sgd\" or another method");
  EXPECT_EQ(refusal({"compression.method=dgc", "optimizer.dampening=0.5"}),
            "command line: method dgc applies the momentum itself, without dampening; "
            "optimizer.dampening is 0.5, expected 0");
  EXPECT_EQ(refusal({"compression.method=momentum_twice", "optimizer.kind=adamw"}),
            "method momentum_twice applies momentum by itself and the optimizer would apply "
            "optimizer.beta1 = 0.9 (optimizer.beta1) once more; set it to 0");
  for (const char* method : {"none", "topk", "fp16", "momentum_replaced"}) {
    EXPECT_EQ(refusal({std::string("compression.method=") + method, "optimizer.kind=adamw"}),
              "no error");
  }
}

TEST(BadConfig, ValuesOutOfRangeAreFoundBeforeAnythingRuns) {
  EXPECT_EQ(refusal({"optimizer.kind=adamw", "optimizer.beta1=1.0"}),
            "command line: optimizer.beta1 is 1, expected 0 <= beta1 < 1");
  for (const auto& [override, message] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.momentum=1.5", "expected 0 <= momentum < 1"},
           {"optimizer.weight_decay=-1.0", "expected 0 or more"},
           {"workers=0", "expected 1 or more"},
           {"train.batch=0", "expected 1 or more"},
           {"train.log_every=0", "expected 1 or more"},
           {"optimizer.kind=lamb", "known: adamw, sgd"},
           {"ema.decay=1.0", "expected 0 <= decay < 1"},
           {"train.freeze=[\"nonesuch\"]", "nearest: layer"},
           {"clip.scope=tensor", "expected model or layer"},
           {"device=gpu", "expected cpu, cuda or emulated"}}) {
    const std::string error = refusal({override});
    EXPECT_NE(error.find(message), std::string::npos) << error;
    EXPECT_NE(error.find(override.substr(0, override.find('='))), std::string::npos) << error;
  }
}

/// Numbers whose products exceed 64 bits, or wrap around to small ones.
TEST(BadConfig, SizesBeyondCountingAreOutOfMemory) {
  const TempDir dir;
  for (const char* key :
       {"data.side=4294967296", "data.train_count=4611686018427387904",
        "data.test_count=9223372036854775807", "model.hidden=[9223372036854775807]",
        "model.hidden=[4294967296,4294967296,4294967296]", "model.classes=9223372036854775807"}) {
    const std::string error =
        error_of([&] { tiny_train(dir / "run", {key}, RunDirectory::Open::overwrite); });
    EXPECT_NE(error.find("out of memory: "), std::string::npos) << key << ": " << error;
  }
}

TEST(BadConfig, LackingMemoryNamesTheKeysThatAskForIt) {
  const TempDir dir;
  EXPECT_TRUE(error_of([&] {
                tiny_train(dir / "a", {"model.hidden=[1000000000000]"});
              }).starts_with("the model's weights (model.…, optimizer.kind): out of memory: "));
  EXPECT_TRUE(error_of([&] {
                tiny_train(dir / "b", {"data.train_count=1000000000000"});
              }).starts_with("the data set (data.…): out of memory: "));
  EXPECT_TRUE(refusal({"model.hidden=[4000000000000000000]"})
                  .starts_with("the model (model.…): out of memory: a shape of "));
}

TEST(BadConfig, APlateauNeedsEvaluations) {
  EXPECT_EQ(refusal({"schedule.kind=plateau", "train.eval_every=0"}),
            "command line: train.eval_every is 0, but schedule.kind = \"plateau\" needs "
            "evaluations; expected 1 or more");
}

TEST(BadConfig, BatchIsSharedEqually) {
  EXPECT_EQ(refusal({"workers=5"}),
            "tiny.toml:8: train.batch is 32, which 5 workers x 1 micro-batches cannot share "
            "equally");
  // a product that wraps around to 0
  EXPECT_EQ(refusal({"workers=4", "train.accumulate=4611686018427387904"}),
            "tiny.toml:8: train.batch is 32, which 4 workers x 4611686018427387904 micro-batches "
            "cannot share equally");
}

TEST(BadConfig, ValidationIsANumberOfSamples) {
  EXPECT_EQ(refusal({"data.validation=-1"}),
            "command line: data.validation is -1, expected 0 or more");
}

TEST(BadConfig, APlateauNeedsAValidationSplit) {
  EXPECT_EQ(refusal({"schedule.kind=plateau"}),
            "command line: schedule.kind is \"plateau\", which needs a validation split; set "
            "data.validation");
  EXPECT_EQ(refusal({"schedule.kind=plateau", "data.validation=8"}), "no error");
}

TEST(BadConfig, CompressionNeedsF32) {
  const std::string error = refusal({"compression.method=topk", "train.precision=f64"});
  EXPECT_NE(error.find("method topk works on f32 gradients"), std::string::npos) << error;
}

TEST(BadConfig, Bf16NeedsACpuThatHasIt) {
  // the ctest entry bf16_refused_test runs this, and hides the instructions from the library
  if (missing_for(DType::bf16).empty()) GTEST_SKIP() << "this machine has it";
  EXPECT_EQ(refusal({"train.precision=bf16"}),
            "command line: train.precision = \"bf16\" needs a CPU with AVX-512 BF16 (avx512_bf16); "
            "train.precision = \"f32\" runs here, and so does train.backend = \"reference\", "
            "slowly");
  EXPECT_EQ(refusal({"train.precision=bf16", "train.backend=reference"}), "no error");
}

TEST(BadConfig, CudaNeedsABuildWithIt) {
  if (std::string(device_kind()) == "cuda") GTEST_SKIP() << "this build has it";
  EXPECT_EQ(refusal({"device=cuda"}),
            "command line: device is cuda, but this program lacks CUDA: configure with "
            "-DWISP_CUDA=ON (cmake --preset cuda)");
  EXPECT_EQ(refusal({"device=emulated"}), "no error");
}

// ---------------------------------------------------------------- during a run

TEST(FullDisk, IsNamedWithTheFile) {
  const TempDir dir;
  for (const char* name : {"metrics.jsonl", "summary.json"}) {
    const std::string run = dir / std::string("run_") + name;
    std::filesystem::create_directory(run);
    std::filesystem::create_symlink("/dev/full", run + "/" + name);
    const std::string error = error_of([&] { tiny_train(run, {"train.max_steps=1"}); });
    EXPECT_NE(error.find(run + "/" + name), std::string::npos) << error;
    EXPECT_NE(error.find("No space left on device"), std::string::npos) << error;
  }
}

struct FailureCase {
  const char* where;
  const char* setting;
  const char* cause;  // empty: "told to fail in WHERE"
};

class FailingWorker : public testing::TestWithParam<FailureCase> {};

TEST_P(FailingWorker, EndsAllAndIsNamed) {
  const FailureCase& failure = GetParam();
  for (const char* mode : {"compression.overlap=true", "compression.overlap=false", "turns=true"}) {
    for (const std::string rank : {"0", "2"}) {
      SCOPED_TRACE(std::string(mode) + ", rank " + rank);
      const Overrides overrides = {"workers=4",
                                   "model.name=failing",
                                   "model.fail_rank=" + rank,
                                   "compression.method=failing",
                                   "compression.guard=false",
                                   "compression.fail_rank=" + rank,
                                   mode,
                                   std::string(failure.setting) + "=" + failure.where};
      const Config config = Config::from_text(
          "threads = 1\ndata.name = \"synthetic\"\ndata.train_count = 64\n"
          "data.test_count = 8\ntrain.batch = 16\n",
          "failing.toml", overrides);
      const std::string error =
          error_of([&] { with_replicas(config, [](ReplicaTest& test) { test.steps(0, 3); }); });
      if (*failure.cause) {
        EXPECT_NE(error.find(failure.cause), std::string::npos) << error;
      } else {
        EXPECT_NE(error.find("rank " + rank + ": "), std::string::npos) << error;
        EXPECT_NE(error.find(std::string("told to fail in ") + failure.where), std::string::npos)
            << error;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Phases, FailingWorker,
                         testing::Values(FailureCase{"forward", "model.fail_in", ""},
                                         FailureCase{"backward", "model.fail_in", ""},
                                         FailureCase{"plan", "compression.fail_in", ""},
                                         FailureCase{"encode", "compression.fail_in", ""},
                                         FailureCase{"decode", "compression.fail_in", ""},
                                         FailureCase{
                                             "collective", "compression.fail_in",
                                             "the ranks\' plans of what to exchange differ"}),
                         [](const auto& parameter) { return std::string(parameter.param.where); });

TEST(FailingWorkerBetweenSteps, EndsAllAndIsNamed) {
  // the other workers are in the next step, or wait for all in a sum over workers
  const std::string error = error_of([] {
    with_replicas(tiny_config({"workers=4"}), [](ReplicaTest& test) {
      test.steps(0, 2);
      WISP_CHECK(test.replica.rank() != 1, "failed after its update");
      test.steps(2, 1);
      test.replica.tally();
    });
  });
  EXPECT_EQ(error, "rank 1: failed after its update");
}

}  // namespace
}  // namespace wisp
