// Tests of whole runs on a device. They have the CPU's bits for every method, model and feature, in
// every order of unordered work. Each wait in the code is needed for that.
#include <execinfo.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/setup/batch_upload.h"
#include "apps/setup/weights.h"
#include "core/copy.h"
#include "core/emulated/memory.h"
#include "core/emulated/queues.h"
#include "core/emulated/runtime.h"
#include "distributed/synchronizer_recipe.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tiny_text_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

using Files = std::map<std::string, std::string>;

/// A run's scores, and the files of its last checkpoint, which do not depend on the device.
Files trained(const Config& config) {
  const TempDir dir;
  const std::optional<Summary> summary =
      train(config, {dir / "run", RunDirectory::Open::create, true});
  Files files = checkpoint_content(dir / "run", summary->steps);
  files["scores"] = testing::PrintToString(summary->scores);
  for (const auto& [name, sum, divisor] : summary->test_units)
    files["unit " + name] = concat(sum, " of ", divisor);
  return files;
}

const Overrides kOnDevice{"device=emulated"};
const Overrides kShort{"train.max_steps=3", "train.eval_every=0", "trace.steps=0"};

/// Buckets and units of fixed sizes. A device's defaults are larger: it counts fewer headers, and
/// methods that work on whole units give other results.
const Overrides kCut{"compression.bucket_bytes=65536", "compression.encode_bytes=32768"};

/// A small ResNet with batch norm.
const Overrides kResNet{"model.name=resnet_cifar", "model.depth=8", "train.batch=12"};

Config images(const Overrides& overrides) { return tiny_config_of("", kShort + kCut + overrides); }

std::vector<std::string> all_methods() {
  std::vector<std::string> names = shipped_methods();
  for (const auto& [name, entry] : SynchronizerRegistry::instance().entries())
    names.push_back(name);
  return names;
}

class DeviceMethods : public testing::TestWithParam<std::string> {};

TEST_P(DeviceMethods, TrainWithTheBitsOfTheCpu) {
  Overrides chosen = Overrides{"workers=3", "train.batch=30"} + method_overrides(GetParam());
  if (GetParam() != "local_sgd") chosen.push_back("compression.guard=false");
  if (GetParam() == "signum") chosen.push_back("optimizer.nesterov=false");
  const auto config = [&](const Overrides& more) { return tiny_config(kShort + chosen + more); };
  EXPECT_EQ(trained(config({})), trained(config(kOnDevice)));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMethods, testing::ValuesIn(all_methods()),
                         [](const auto& tested) { return tested.param; });

struct Feature {
  const char* name;
  Overrides overrides;
};

class DeviceFeatures : public testing::TestWithParam<Feature> {};

TEST_P(DeviceFeatures, TrainWithTheBitsOfTheCpu) {
  const Overrides chosen = kResNet + Overrides{"workers=2"} + GetParam().overrides;
  EXPECT_EQ(trained(images(chosen)), trained(images(chosen + kOnDevice)));
}

const Overrides kDgc{"compression.method=dgc", "compression.ratio=0.05"};
const Overrides kRounded{"train.precision=bf16", "train.backend=reference"};

INSTANTIATE_TEST_SUITE_P(
    All, DeviceFeatures,
    testing::Values(
        Feature{"dense", {}}, Feature{"accumulation", kDgc + Overrides{"train.accumulate=3"}},
        Feature{"squares", {"compression.method=variance", "train.accumulate=3"}},
        Feature{"averages", kDgc + Overrides{"ema.decay=0.9", "train.eval_every=1"}},
        Feature{"clipped_locally", kDgc + Overrides{"clip.norm=0.5"}},
        Feature{"clipped_mean", {"clip.norm=0.5", "clip.where=mean"}},
        Feature{"clipped_by_layer", kDgc + Overrides{"clip.norm=0.5", "clip.scope=layer"}},
        Feature{"no_overlap", kDgc + Overrides{"compression.overlap=false"}},
        Feature{"turns", kDgc + Overrides{"turns=true"}},
        Feature{"probe", kDgc + Overrides{"compression.probe_every=2"}},
        Feature{"record", kDgc + Overrides{"record.gradients.every=1"}},
        Feature{"frozen", kDgc + Overrides{"train.freeze=[\"conv*\"]"}},
        Feature{"model_scope", kDgc + Overrides{"compression.scope=model"}},
        Feature{"f64", {"train.precision=f64", "train.backend=reference"}},
        // the device's backend reads weights that are rounded once a step
        Feature{"bf16", kRounded + kDgc + Overrides{"train.accumulate=3"}},
        Feature{"bf16_averages",  // two steps, an evaluation, a step
                kRounded + Overrides{"ema.decay=0.9", "train.eval_every=1", "train.batch=64"}},
        Feature{"bf16_frozen", kRounded + Overrides{"train.freeze=[\"conv*\"]"}},
        Feature{"bf16_gossip", kRounded + Overrides{"compression.method=dcd"}},
        Feature{"bf16_local",
                kRounded + Overrides{"compression.method=local_sgd", "local_sgd.period=2"}},
        Feature{"distance",
                {"compression.method=choco", "gossip.code=topk", "train.distance_every=1"}}),
    [](const auto& tested) { return tested.param.name; });

/// Each worker has its own device. The stand-in for NCCL between them adds in Wisp's order.
TEST(DeviceRun, OfWorkersWithADeviceEachHasTheBitsOfTheCpu) {
  for (const Overrides& method :
       {Overrides{}, kDgc, Overrides{"compression.method=powersgd"},
        Overrides{"compression.method=oktopk"}, Overrides{"compression.method=choco"},
        Overrides{"compression.method=local_sgd", "local_sgd.period=2"},
        kDgc + Overrides{"ema.decay=0.9"}}) {
    SCOPED_TRACE(testing::PrintToString(method));
    const Overrides chosen =
        kResNet + Overrides{"workers=2", "train.eval_every=1", "train.accumulate=2"} + method;
    EXPECT_EQ(trained(images(chosen)),
              trained(images(chosen + kOnDevice + Overrides{"devices=2"})));
  }
}

TEST(DeviceRun, OfWordsHasTheBitsOfTheCpu) {
  const TempDir dir;
  const std::string text = dir.write("text.txt", tiny_lines(60));
  const Overrides chosen{"workers=2", "train.epochs=2", "model.dropout=0.3",
                         "compression.method=topk", "compression.ratio=0.1"};
  for (const Overrides& more : {Overrides{}, kRounded + Overrides{"model.tied=false"},
                                kRounded + Overrides{"model.tied=true"}}) {
    SCOPED_TRACE(testing::PrintToString(more));
    EXPECT_EQ(trained(tiny_text_config(text, chosen + more)),
              trained(tiny_text_config(text, chosen + more + kOnDevice)));
  }
}

TEST(DeviceRun, ReadsWeightsThatItRoundedOnceAStep) {
  with_replicas(images(kResNet + kRounded + kOnDevice), [](ReplicaTest& test) {
    const Parameter& weight = *test.replica.model().parameters().at(0);
    EXPECT_EQ(weight.variable.factor(DType::bf16).dtype(), DType::f32);
    test.steps(0, 1);
    EXPECT_EQ(weight.variable.factor(DType::bf16).dtype(), DType::bf16);
  });
}

#if WISP_HAS_SNDFILE
TEST(DeviceRun, OfSpeechHasTheBitsOfTheCpu) {
  const TempDir dir;
  const std::string manifest = write_tones(dir);
  const Overrides chosen{"workers=2", "train.epochs=2"};
  EXPECT_EQ(trained(tone_config(manifest, chosen)),
            trained(tone_config(manifest, chosen + kOnDevice)));
}
#endif

TEST(DeviceRun, GoesOnOnTheCpuAndBack) {
  const TempDir dir;
  const Overrides chosen = Overrides{"workers=2", "train.epochs=2"} + kDgc;
  const auto run = [&](const std::string& name, const std::string& first, const std::string& then) {
    tiny_train(dir / name, chosen + Overrides{"train.max_steps=3", "device=" + first});
    tiny_train(dir / name, chosen + Overrides{"device=" + then}, RunDirectory::Open::resume);
    return checkpoint_content(dir / name, 8);
  };
  const Files whole = run("cpu", "cpu", "cpu");
  EXPECT_EQ(run("to_cpu", "emulated", "cpu"), whole);
  EXPECT_EQ(run("from_cpu", "cpu", "emulated"), whole);
}

/// A run moves to another device and its default buckets. Only counted bytes differ, by headers.
TEST(DeviceRun, GoesOnInOtherBuckets) {
  const TempDir dir;
  const auto run = [&](const std::string& name, const Overrides& method, const std::string& first,
                       const std::string& then) {
    const Overrides chosen = kResNet + kShort + method + Overrides{"workers=2"};
    train(tiny_config_of("", chosen + Overrides{"train.max_steps=2", "device=" + first}),
          {dir / name, RunDirectory::Open::create, true});
    train(tiny_config_of("", chosen + Overrides{"train.max_steps=4", "device=" + then}),
          {dir / name, RunDirectory::Open::resume, true});
    return checkpoint_content(dir / name, 4).at("shared.safetensors");
  };
  const std::string whole = run("cpu", kDgc, "cpu", "cpu");
  EXPECT_TRUE(run("to_cpu", kDgc, "emulated", "cpu") == whole);
  EXPECT_TRUE(run("from_cpu", kDgc, "cpu", "emulated") == whole);
  const Overrides onebit = method_overrides("onebit");
  EXPECT_TRUE(run("onebit_to_cpu", onebit, "emulated", "cpu") ==
              run("onebit", onebit, "cpu", "cpu"));
  const std::string refused =
      error_of([&] { run("refused", {"compression.method=oktopk"}, "emulated", "cpu"); });
  EXPECT_NE(refused.find("compression.bucket_bytes and compression.encode_bytes that the run had "
                         "(their defaults are larger on a GPU)"),
            std::string::npos)
      << refused;
}

/// The guard decides for whole units, and a device's units are larger by default. If it decides as
/// on the CPU, or is off, a device has the CPU's bits.
TEST(DeviceRun, HasTheBitsOfTheCpuWhereTheGuardDecidesAlike) {
  const Overrides natural =
      kResNet + Overrides{"compression.method=natural", "workers=7", "train.batch=14",
                          "train.max_steps=2", "train.eval_every=0"};
  const auto dense_on = [&](const Overrides& more) {
    const Prepared run(tiny_config_of("", natural + more));
    std::vector<std::string> names;
    for (const LayerPlan& layer : run.exchange().layers)
      if (layer.path == UnitPath::more_than_dense) names.push_back(layer.name);
    return names;
  };
  const auto weights_on = [&](const Overrides& more) {
    return trained(tiny_config_of("", natural + more)).at("shared.safetensors");
  };
  const Overrides defaults{"compression.bucket_bytes=-1"};
  EXPECT_EQ(dense_on(defaults).size(), 3u);
  EXPECT_EQ(dense_on(defaults + kOnDevice).size(), 0u);
  EXPECT_TRUE(weights_on(defaults) != weights_on(defaults + kOnDevice));
  for (const Overrides& alike : {kCut, defaults + Overrides{"compression.guard=false"}}) {
    SCOPED_TRACE(testing::PrintToString(alike));
    EXPECT_EQ(dense_on(alike), dense_on(alike + kOnDevice));
    EXPECT_TRUE(weights_on(alike) == weights_on(alike + kOnDevice));
  }
}

TEST(DeviceRun, StartsFromWeightsInAFile) {
  const TempDir dir;
  tiny_train(dir / "first", kShort);
  const Overrides chosen = kShort + Overrides{"model.init=" + (dir / "w.safetensors")};
  const Prepared run(tiny_config());
  with_replicas(tiny_config(), [&](ReplicaTest& test) {
    write_weights(dir / "w.safetensors", test.replica.model(), test.replica.parameters(),
                  run.facts());
  });
  EXPECT_EQ(trained(tiny_config(chosen)), trained(tiny_config(chosen + kOnDevice)));
}

/// Device and CPU give the best weights and the finished run equal scores. Workers with their own
/// weights are included.
TEST(DeviceRun, IsEvaluatedAsOnTheCpu) {
  for (const char* method : {"dgc", "choco"}) {
    const TempDir dir;
    const Overrides chosen =
        Overrides{"workers=2", "data.validation=32", "train.batch=16"} + method_overrides(method);
    const Summary cpu = tiny_train(dir / "cpu", chosen);
    const Summary device = tiny_train(dir / "device", chosen + kOnDevice);
    EXPECT_EQ(device.scores, cpu.scores);
    const RunEvaluation there = evaluate_run(dir / "device", {}, "best");
    const RunEvaluation here = evaluate_run(dir / "device", Overrides{"device=cpu"}, "best");
    EXPECT_EQ(there.test.loss, here.test.loss);
    EXPECT_EQ(there.test.metrics, here.test.metrics);
  }
}

TEST(DeviceRun, ThatFailsWithWorkUnderWayTellsItsOwnError) {
  const std::string failure = error_of([] {
    // batch norm of the last stage has one row, while convolutions before it are still running
    trained(images({"model.name=resnet", "model.depth=18", "train.batch=1", "device=emulated"}));
  });
  EXPECT_NE(failure.find("batch statistics need at least 2"), std::string::npos) << failure;
}

TEST(DeviceRun, ThatFindsNoMemorySaysWhatForAndWhatWouldHelp) {
  with_replicas(images(kResNet + Overrides{"train.batch=128"} + kOnDevice), [](ReplicaTest& test) {
    auto& memory = emulated::Memory::get();
    const size_t limit = memory.limit();
    memory.set_limit(memory.mapped_bytes());
    const std::string failure = error_of([&] { test.steps(0, 1); });
    memory.set_limit(limit);
    EXPECT_EQ(failure.find("step 0, forward and backward: emulated:0: out of memory: "), 0u)
        << failure;
    EXPECT_NE(failure.find("a smaller train.batch would help"), std::string::npos) << failure;
  });
}

constexpr uint64_t kOrders = 4;  // drawn orders, besides the one with all work as late as possible

/// Runs whose threads, streams and events cover all ordering of a step. The plateau schedule of the
/// first run keeps an evaluation's loss in the checkpoint.
std::vector<Config> ordered_runs() {
  const Overrides dgc =
      kDgc + Overrides{"workers=2",          "train.eval_every=1", "clip.norm=0.5",
                       "train.accumulate=3", "data.validation=32", "schedule.kind=plateau"} +
      kOnDevice;
  const Overrides choco{"compression.method=choco", "gossip.code=topk", "workers=2"};
  const Overrides diverges{"optimizer.lr=1e30", "optimizer.weight_decay=0"};
  return {images(kResNet + dgc), tiny_config(kShort + choco + kOnDevice),
          tiny_config(kShort + diverges + kOnDevice),
          tiny_config(kShort + diverges + choco + kOnDevice)};
}

TEST(DeviceOrder, OfWhatIsNotOrderedChangesNothing) {
  std::vector<Files> expected;
  for (const Config& config : ordered_runs()) expected.push_back(trained(config));
  for (uint64_t seed = 1; seed <= kOrders; ++seed) {
    emulated::Queues::get().shuffle(seed);
    size_t i = 0;
    for (const Config& config : ordered_runs()) EXPECT_EQ(trained(config), expected[i++]) << seed;
  }
  emulated::Queues::get().shuffle(0);
}

/// Later batches arrive before the computation on an earlier one begins.
TEST(DeviceOrder, ABatchIsCopiedBesideWhatComputes) {
  TestContext rig({.device = {Device::Kind::cuda, 0}});
  const Tensor computed = host_tensor({1}, DType::i32, rig.stream.device());
  *computed.data<int32_t>() = 1;
  const Tensor zero = rig.context.zeros({1}, DType::i32);
  BatchUpload upload(rig.context);
  const auto batch = [](int64_t index) {
    return Batch{.samples = Tensor({3}, DType::i64), .index = index};
  };
  upload(batch(0));
  copy(rig.stream, zero, computed);  // stands for the computation
  for (int64_t index = 1; index < 5; ++index) upload.start(batch(index));  // waits for batch 2
  EXPECT_EQ(*computed.data<int32_t>(), 1);
  upload(batch(4));
  rig.stream.synchronize();
  EXPECT_EQ(*computed.data<int32_t>(), 0);
}

/// Whether a run without the waits at `place` has the expected files, in the order drawn from
/// `seed`. It runs in a separate process, as a run that misses a wait may do anything.
bool ends_well_without(const emulated::WaitPlace& place, const Config& config,
                       const Files& expected, uint64_t seed) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const int silent = open("/dev/null", O_WRONLY);
    dup2(silent, STDERR_FILENO);
    emulated::watch_waits(place);
    emulated::Queues::get().shuffle(seed);
    bool well = false;
    try {
      well = trained(config) == expected && emulated::Queues::get().failure().empty();
    } catch (const std::exception&) {  // result of a missing wait
    }
    _exit(well ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << "the run hangs";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Every wait for an event in the code is needed: without it for one caller, some run fails. (All
/// workers wait for data that they share between steps.)
TEST(DeviceOrder, NeedsEachEvent) {
  std::map<void*, bool> missed;  // key: innermost address of a place
  for (const Config& config : ordered_runs()) {
    emulated::watch_waits();
    const Files expected = trained(config);
    const std::set<emulated::WaitPlace> places = emulated::watch_waits();
    emulated::forget_waits();
    EXPECT_GE(places.size(), 2u);
    for (uint64_t seed = 0; seed <= kOrders; ++seed) {
      EXPECT_TRUE(ends_well_without({}, config, expected, seed)) << seed;
      for (const emulated::WaitPlace& place : places)
        missed[place[0]] = missed[place[0]] || !ends_well_without(place, config, expected, seed);
    }
  }
  EXPECT_GE(missed.size(), 4u);
  for (const auto& [place, by_some] : missed) {
    if (by_some) continue;
    ADD_FAILURE() << "no run misses the wait that is asked for here:";
    backtrace_symbols_fd(&place, 1, STDERR_FILENO);
  }
}

}  // namespace
}  // namespace wisp
