// Tests of malformed payloads with a valid header and checksum. A rank that reads one ends the run.
// The CPU ends it before a weight changes, a device before anything of the next step is sent or
// saved.
#include <gtest/gtest.h>

#include <functional>

#include "compression/error_feedback.h"
#include "compression/forwarding_compressor.h"
#include "core/loops/parallel.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr int64_t kStep = 2;  // step in which rank 1 sends a malformed payload

struct Ruin {
  std::byte* out;
  WISP_HD void operator()(int64_t i) const { out[i] = std::byte{0xff}; }
};

void ruin_if_told(const Stream& stream, const StepInfo& info, const Outlet& outlet) {
  if (info.rank == 1 && info.step == kStep)
    parallel_for(stream, outlet.capacity, Ruin{outlet.data});
}

class Ruining final : public ForwardingCompressor {
 public:
  using ForwardingCompressor::ForwardingCompressor;
  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    ForwardingCompressor::encode(context, unit, info, round, outlets);
    for (const Outlet& outlet : outlets) ruin_if_told(context.stream, info, outlet);
  }
};

const CompressorRegistration ruining(
    "ruining", "test: another method, whose messages are ruined",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      std::string method = "topk";
      config.bind("compression.ruined", method, "test: the method");
      return std::make_unique<Ruining>(
          CompressorRegistry::instance().find("compression method", method).make(config, setup));
    });

class RuiningCode final : public Code {
 public:
  explicit RuiningCode(std::unique_ptr<Code> inner) : inner_(std::move(inner)) {}
  Traits traits() const override { return inner_->traits(); }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->message(spec, info);
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->scratch_bytes(spec, info);
  }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override {
    inner_->encode(context, source, spec, info, outlet, scratch);
    ruin_if_told(context.stream, info, outlet);
  }
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override {
    inner_->decode(context, payload, weight, add, spec, info, into, scratch);
  }

 private:
  std::unique_ptr<Code> inner_;
};

const CodeRegistration ruining_code(
    "ruining_code", "test: topk, whose messages are ruined",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      return std::make_unique<RuiningCode>(
          CodeRegistry::instance().find("code", "topk").make(config, setup));
    },
    Feedback::none);

struct Way {
  const char* name;
  Overrides overrides;
};

Way averaged(const char* name, const char* method, const Overrides& more) {
  return {name, Overrides{"compression.method=ruining", "compression.guard=false",
                          concat("compression.ruined=", method)} +
                    more};
}

class MalformedPayload : public testing::TestWithParam<Way> {
 protected:
  /// Runs `steps` steps with the overrides `more`, then calls `then`, and expects the error.
  static void expect_named(
      int64_t steps, const Overrides& more,
      const std::function<void(Replica&)>& then = [](Replica&) {}) {
    const Overrides three{"workers=3", "train.batch=30"};
    const std::string error = error_of([&] {
      with_replicas(tiny_config(GetParam().overrides + three + more), [&](ReplicaTest& test) {
        test.steps(0, steps);
        then(test.replica);
      });
    });
    for (const char* part :
         {"step 2, bucket ", ", unit of layer", ": the payload of rank 1: field "})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  }
};

const Overrides kOnDevice{concat("device=", device_kind())};

TEST_P(MalformedPayload, EndsItsStepOnTheCpu) { expect_named(kStep + 1, {}); }

/// The reason why runs cannot use this build's device; empty if they can.
std::string obstacle() {
  const std::string missing =
      std::string(device_kind()) == "cuda" ? missing_for_cuda() : std::string();
  return missing.empty() ? device_obstacle() : "lacks " + missing;
}

TEST_P(MalformedPayload, EndsTheNextStepOnADevice) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();
  expect_named(kStep + 2, kOnDevice);
}

TEST_P(MalformedPayload, IsNotSavedOnADevice) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();
  expect_named(kStep + 1, kOnDevice, [](Replica& replica) { replica.barrier(); });
}

const Overrides kSparse{"compression.ratio=0.05", "compression.warmup=none"};

INSTANTIATE_TEST_SUITE_P(
    All, MalformedPayload,
    testing::Values(averaged("runs16", "topk", kSparse + Overrides{"compression.indices=runs16"}),
                    averaged("u32", "topk", kSparse + Overrides{"compression.indices=u32"}),
                    averaged("gamma", "topk", kSparse + Overrides{"compression.indices=gamma"}),
                    averaged("bitmap", "topk", kSparse + Overrides{"compression.indices=bitmap"}),
                    averaged("gtopk", "gtopk", kSparse),
                    averaged("oktopk", "oktopk", kSparse + Overrides{"compression.start_after=0"}),
                    averaged("dgc", "dgc", kSparse), averaged("fft", "fft", {}),
                    averaged("elias", "qsgd", {"compression.wire=elias"}),
                    averaged("blocks", "block_topk",
                             kSparse + Overrides{"compression.sharing=own"}),
                    averaged("powers", "variance", kSparse),
                    Way{"gossip",
                        {"compression.method=choco", "gossip.code=ruining_code",
                         "compression.ratio=0.05", "compression.warmup=none"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace wisp
