#include "apps/setup/exchange_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/lab/exchange_table.h"
#include "compression/error_feedback.h"
#include "distributed/averaging/gradient_averaging.h"
#include "distributed/exchange/message_traffic.h"
#include "distributed/exchange/wire_header.h"
#include "tests/support/error_of.h"
#include "tests/support/exchange_plans.h"
#include "tests/support/scalar_run.h"
#include "tests/support/toy_compressors.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

/// The bytes that layers without a method send.
double plain_bytes(const ExchangePlan& plan) {
  double bytes = 0.0;
  for (const LayerPlan& layer : plan.layers)
    if (layer.unit < 0) bytes += layer.bytes_sent;
  return bytes;
}

/// A plan in which `compressor` takes all segments of two workers.
ExchangePlan plan_for(std::unique_ptr<Compressor> compressor, const std::vector<Segment>& shapes) {
  const std::vector<Segment> segments = segments_of(shapes);
  Methods methods;
  methods.methods.push_back({"toy", std::move(compressor), Scope::layer});
  methods.method_of.assign(segments.size(), 0);
  TrainOptions options;
  options.workers = 2;
  return plan_exchange(methods, options, segments);
}

/// A code with a given variance.
class Rounding final : public Code {
 public:
  explicit Rounding(double variance) : variance_(variance) {}
  std::optional<double> variance(const UnitSpec&) const override { return variance_; }
  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_gather, .bytes = spec.numel};
  }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  void encode(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
              std::byte*) const override {}
  void decode(Context&, const Payload&, float, bool, const UnitSpec&, const StepInfo&, Tensor,
              std::byte*) const override {}

 private:
  double variance_;
};

TEST(ExchangePlan, HasTheBytesOfEachLayer) {
  constexpr int kWorkers = 4;
  const ExchangePlan plan =
      plan_of({"workers=4", "compression.method=topk", "compression.ratio=0.01"});
  ASSERT_EQ(plan.layers.size(), 4u);  // weight and bias of a hidden and of the last layer
  for (const LayerPlan& layer : plan.layers) {
    const double dense = 2.0 * (kWorkers - 1) / kWorkers * 4.0 * static_cast<double>(layer.numel);
    EXPECT_EQ(layer.bytes_dense, dense);
    if (layer.shape.rank() == 1) {
      EXPECT_EQ(layer.kind, "bias");
      EXPECT_EQ(layer.method, "");
      EXPECT_EQ(layer.bytes_sent, dense);
      EXPECT_EQ(layer.state_bytes, 0);
      continue;
    }
    EXPECT_EQ(layer.kind, "linear");
    EXPECT_EQ(layer.method, "topk");
    EXPECT_EQ(layer.rounds, std::vector<Collective>{Collective::all_gather});
    EXPECT_EQ(layer.state_bytes, 4 * layer.numel);
    // k values with their positions (at most 6 bytes together), the size, and the header
    const auto k = static_cast<double>(layer.numel / 100);
    EXPECT_GE(layer.bytes_sent, (kWorkers - 1) * (4.0 * k + 4.0 + 16.0));
    EXPECT_LE(layer.bytes_sent, (kWorkers - 1) * (6.0 * (k + 2.0) + 4.0 + 16.0));
  }
  EXPECT_TRUE(plan.remarks.empty());
}

TEST(ExchangePlan, ItsTotalIsWhatTheRunSends) {
  constexpr int kWorkers = 3;
  for (const char* method : {"none", "fp16", "topk"}) {
    const Overrides overrides = {"workers=3", concat("compression.method=", method),
                                 "train.batch=30"};
    const PhasePlan phase = plan_of(overrides).phases.back();
    with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
      test.steps(0, 1);
      const double status = 2.0 * (kWorkers - 1) / kWorkers * 16.0;
      const auto sent = static_cast<double>(test.replica.synchronizer().cost().bytes_sent);
      if (std::string(method) == "topk") {
        EXPECT_LE(sent, phase.bytes_sent + status);
      } else {
        // a reduction's shares are whole elements, so a rank may have one more per slice and round
        EXPECT_NEAR(sent, phase.bytes_sent + status, 100.0) << method;
      }
    });
  }
}

/// The plan has the buckets and units of the run, and the same layers in each unit.
TEST(ExchangePlan, CutsTheModelAsTheRunDoes) {
  const Overrides overrides = {"workers=2", "model.hidden=[64, 32, 16]", "compression.method=topk",
                               "compression.bucket_bytes=2000", "compression.encode_bytes=1000"};
  const ExchangePlan plan = plan_of(overrides);
  with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
    const Cut& cut = dynamic_cast<const GradientAveraging&>(test.replica.synchronizer()).cut();
    ASSERT_GT(cut.buckets.size(), 2u);
    const auto segments = test.replica.parameters().segments();
    ASSERT_EQ(plan.layers.size(), segments.size());
    for (size_t i = 0; i < segments.size(); ++i) EXPECT_EQ(plan.layers[i].name, segments[i].name);
    for (size_t unit = 0; unit < cut.units.size(); ++unit) {
      for (const int id : cut.units[unit].segments) {
        EXPECT_EQ(plan.layers[static_cast<size_t>(id)].unit, static_cast<int>(unit));
        EXPECT_EQ(plan.layers[static_cast<size_t>(id)].bucket, cut.units[unit].bucket);
      }
    }
  });
}

/// The plan has the mean of steps that differ, and the units' total of a late start.
TEST(ExchangePlan, HasTheMeanOfStepsThatDiffer) {
  const ExchangePlan plan =
      plan_of({"workers=4", "model.hidden=[512]", "compression.method=acpsgd"});
  const auto layer = std::find_if(plan.layers.begin(), plan.layers.end(),
                                  [](const LayerPlan& l) { return l.name == "layer0.weight"; });
  const double elements =
      4.0 * static_cast<double>(layer->shape[0] + layer->numel / layer->shape[0]);
  EXPECT_EQ(layer->bytes_sent, 1.5 * 4.0 * elements / 2.0);  // rank 4, one factor of f32 in a step
  const ExchangePlan late = plan_of({"workers=4", "compression.method=onebit_adam",
                                     "optimizer.kind=adamw", "optimizer.lr=0.001"});
  EXPECT_TRUE(remarks_on(
      late, {fmt::format("then {:.0f}", late.phases.back().bytes_sent - plain_bytes(late))}));
}

/// Rare rounds count at their rate, and messages of variable size at their capacity.
TEST(ExchangePlan, HasTheMeanOfAPeriod) {
  constexpr int kWorkers = 4;
  constexpr int64_t kPeriod = 64;
  const Overrides overrides = {"workers=4", "compression.method=oktopk", "compression.ratio=0.05",
                               "compression.start_after=0"};
  const ExchangePlan plan = plan_of(overrides);
  for (const LayerPlan& layer : plan.layers) {
    if (layer.shape.rank() == 1) continue;
    const std::vector<Field> fields = layer_fields({layer.numel});
    const UnitSpec spec{fields, layer.numel};
    const auto method = make_method("oktopk", "");
    double bytes = 0.0;
    for (int64_t step = 512; step < 512 + kPeriod; ++step) {
      StepInfo info = step_info(step, 0.05);
      info.ranks = info.summands = kWorkers;
      std::vector<Message> messages;
      for (int round = 0; round < method->rounds(spec, info); ++round)
        messages.push_back(method->message(spec, info, round));
      bytes += bytes_on_wire(messages, kWorkers) / kPeriod;
    }
    EXPECT_NEAR(layer.bytes_sent, bytes, 1e-6 * bytes) << layer.name;
    EXPECT_EQ(layer.rounds, (std::vector{Collective::all_to_all, Collective::all_gather}));
  }
  with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
    double sent = 0.0, most = 0.0;
    for (int64_t step = 0; step < kPeriod; ++step) {
      test.steps(step, 1);
      const double status = 24.0;  // 16 bytes, reduced among 4
      const double bytes =
          static_cast<double>(test.replica.synchronizer().cost().bytes_sent) - status;
      sent += bytes / kPeriod;
      most = std::max(most, bytes);
    }
    EXPECT_LE(sent, plan.phases.back().bytes_sent);
    EXPECT_GE(sent, 0.6 * plan.phases.back().bytes_sent) << "k of the 3k/2 that may be";
    EXPECT_GT(most, plan.phases.back().bytes_sent) << "a step with all rounds";
  });
}

/// The mean over a period decides, and so the first step, which is the largest, is compressed too.
TEST(ExchangePlan, ComparesTheMeanOfAPeriodAndRemarksOnItsPeak) {
  const Overrides overrides = {"workers=16", "train.batch=32", "compression.method=oktopk",
                               "compression.ratio=0.06", "compression.start_after=0"};
  const ExchangePlan plan = plan_of(overrides);
  const PhasePlan& phase = plan.phases.back();
  EXPECT_EQ(phase.more_than_dense, 0);
  EXPECT_LT(phase.bytes_sent, phase.bytes_dense);
  EXPECT_GT(phase.bytes_most, phase.bytes_dense);
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_EQ(plan.remarks[0],
            fmt::format("all epochs, ratio 0.06: single steps of oktopk send up to {:.0f} bytes a "
                        "worker, more than dense, {:.0f}; on average a step sends {:.0f}",
                        phase.bytes_most, phase.bytes_dense, phase.bytes_sent));
  with_replicas(tiny_config(overrides), [](ReplicaTest& test) {
    const auto& averaging = dynamic_cast<GradientAveraging&>(test.replica.synchronizer());
    for (int64_t step = 0; step < 2; ++step) {
      test.steps(step, 1);
      EXPECT_GT(averaging.compressed_units(), 0) << step;
    }
  });
}

/// No unit is compressed whose rare large steps outweigh the others, in the plan and in the run.
TEST(ExchangePlan, LeavesAUnitDenseWhoseMeanIsMore) {
  const Overrides overrides = {"workers=8", "train.batch=32", "compression.method=oktopk",
                               "compression.ratio=0.32", "compression.start_after=3"};
  const ExchangePlan plan = plan_of(overrides);
  const PhasePlan& phase = plan.phases.back();
  EXPECT_EQ(phase.more_than_dense, phase.units);
  EXPECT_EQ(phase.bytes_most, phase.bytes_dense);
  EXPECT_TRUE(remarks_on(plan, {"oktopk would send", "on average", "go dense"}));
  EXPECT_FALSE(remarks_on(plan, {"single steps"}));
  EXPECT_TRUE(remarks_on(plan_of(overrides + Overrides{"compression.guard=false"}),
                         {"oktopk would send", "compression.guard is off"}));
  with_replicas(tiny_config(overrides), [](ReplicaTest& test) {
    const auto& averaging = dynamic_cast<GradientAveraging&>(test.replica.synchronizer());
    for (int64_t step = 0; step < 6; ++step) {
      test.steps(step, 1);
      EXPECT_EQ(averaging.compressed_units(), 0) << step;
    }
  });
}

TEST(ExchangePlan, RemarksOnGossipThatSendsMoreThanDense) {
  EXPECT_TRUE(remarks_on(plan_of({"workers=8", "compression.method=choco", "gossip.code=natural",
                                  "gossip.graph=complete"}),
                         {"choco", "more than a dense all-reduce"}));
  EXPECT_FALSE(remarks_on(plan_of({"workers=8", "compression.method=choco", "gossip.code=natural"}),
                          {"more than a dense all-reduce"}));
}

TEST(ExchangePlan, SaysWhatTheGuardDoesInEachPhase) {
  const Overrides overrides = {"workers=8",
                               "train.batch=32",
                               "compression.method=dgc",
                               "compression.ratio=0.01",
                               "compression.warmup=list",
                               "compression.warmup_list=[1.0, 0.25]",
                               "compression.warmup_epochs=2"};
  const ExchangePlan plan = plan_of(overrides);
  ASSERT_EQ(plan.phases.size(), 3u);
  EXPECT_EQ(plan.phases[0].warm_up, plan.phases[0].units);
  EXPECT_EQ(plan.phases[1].epoch, 1.0);
  EXPECT_EQ(plan.phases[1].ratio, 0.25);
  EXPECT_EQ(plan.phases[1].more_than_dense, plan.phases[1].units);
  EXPECT_EQ(plan.phases[1].bytes_sent, plan.phases[1].bytes_dense);
  EXPECT_EQ(plan.phases[2].more_than_dense, 0);
  EXPECT_LT(plan.phases[2].bytes_sent, plan.phases[2].bytes_dense);
  EXPECT_TRUE(remarks_on(plan, {"epochs 1 to 2, ratio 0.25: dgc would send", "go dense"}));
  EXPECT_EQ(plan.remarks.size(), 1u);
  EXPECT_TRUE(remarks_on(plan_of(overrides + Overrides{"compression.guard=false"}),
                         {"compression.guard is off"}));
  with_replicas(tiny_config(overrides), [](ReplicaTest& test) {
    for (const auto& [step, compressed] : {std::pair(0, false), {5, false}, {9, true}}) {
      test.steps(step, 1);
      const auto& averaging = dynamic_cast<GradientAveraging&>(test.replica.synchronizer());
      EXPECT_EQ(averaging.compressed_units() > 0, compressed) << step;
    }
  });
}

TEST(ExchangePlan, RemarksOnOneWorkerAndOnRulesThatDecideNothing) {
  for (const char* method : {"topk", "choco", "local_sgd"})
    EXPECT_TRUE(remarks_on(plan_of({concat("compression.method=", method)}),
                           {"a single worker exchanges nothing", method}));
  for (const Overrides& fine : {Overrides{}, {"workers=2", "compression.method=choco"}})
    EXPECT_FALSE(remarks_on(plan_of(fine), {"a single worker"}));
  const Config config = Config::from_text(tiny_text(kTinyModel) + R"(
workers = 2
[[compression.policy]]
kind = "linear"
method = "fp16"
[[compression.policy]]
name = "layer0.weight"
method = "topk"
)",
                                          "tiny.toml");
  const ExchangePlan plan = Prepared(config).exchange();
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_TRUE(remarks_on(plan, {"tiny.toml:22: this rule of compression.policy decides nothing"}))
      << plan.remarks[0];
}

TEST(ExchangePlan, RulesHaveOptionsOfTheirOwn) {
  const auto sent = [](const std::string& options) {
    const ExchangePlan plan =
        plan_of({"workers=4", "compression.ratio=0.05", "compression.indices=runs16",
                 concat("compression.policy=[{ name = \"layer0.weight\", method = \"topk\"",
                        options, " }, { kind = \"linear\", method = \"topk\" }]")});
    std::map<std::string, double> bytes;
    for (const LayerPlan& layer : plan.layers) bytes[layer.name] = layer.bytes_sent;
    return bytes;
  };
  auto plain = sent("");
  auto half = sent(", options = { values = \"f16\" }");
  EXPECT_NEAR(half["layer0.weight"] / plain["layer0.weight"], 4.0 / 6.0, 1e-3);
  EXPECT_EQ(half["layer1.weight"], plain["layer1.weight"]);
  EXPECT_NE(error_of([&] {
              sent(", options = { value = \"f16\" }");
            }).find("method topk has no option 'value'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              sent(", options = { ratio = 0.5 }");
            }).find("compression.ratio holds for the whole run"),
            std::string::npos);
}

TEST(ExchangePlan, RemarksOnMatricesTooSmallForTheRank) {
  const std::vector<Segment> shapes = {{.name = "wide", .shape = {16, 3, 3, 16}},
                                       {.name = "square", .shape = {64, 64}}};
  const auto plan = [&](const char* method, int rank) {
    return plan_for(make_method(method, concat("[compression]\nmin_rate = 0\nrank = ", rank)),
                    shapes);
  };
  EXPECT_TRUE(
      remarks_on(plan("powersgd", 16),
                 {"factors of rank 16 send no fewer numbers a step than matrices of 16 x 144 have",
                  "(wide)"}));
  EXPECT_FALSE(remarks_on(plan("powersgd", 16), {"64 x 64"}));
  EXPECT_FALSE(remarks_on(plan("powersgd", 8), {"factors of rank"}));
  EXPECT_FALSE(remarks_on(plan("acpsgd", 16), {"factors of rank"}));  // one factor in a step
  EXPECT_TRUE(remarks_on(plan("acpsgd", 64), {"factors of rank 64", "64 x 64"}));
}

TEST(ExchangePlan, RemarksOnEmbeddingsUnderACodeThatKeepsNoZeros) {
  const std::vector<Segment> shapes = {{.name = "words", .shape = {50, 8}, .kind = "embedding"},
                                       {.name = "fc", .shape = {8, 8}, .kind = "linear"}};
  const auto sign = [](bool zero) {
    return toy_with_traits(toy_scaled_sum(), {.represents_zero = zero});
  };
  EXPECT_TRUE(remarks_on(plan_for(sign(false), shapes), {"does not keep zeros", "(words)"}));
  EXPECT_FALSE(remarks_on(plan_for(sign(true), shapes), {"keep zeros"}));
}

TEST(ExchangePlan, RemarksOnFeedbackAroundAnUnbiasedRoundingAndRefusesAWildOne) {
  const std::vector<Segment> shapes = {{.name = "fc", .shape = {64, 64}}};
  const auto plan = [&](Feedback kind, double variance) {
    return plan_for(with_feedback("toy", std::make_unique<Rounding>(variance), {.kind = kind}),
                    shapes);
  };
  EXPECT_TRUE(remarks_on(plan(Feedback::ef, 0.25), {"unbiased rounding", "0.25", "(fc)"}));
  EXPECT_FALSE(remarks_on(plan(Feedback::none, 7.0), {"unbiased"}));
  for (const Feedback kind : {Feedback::ef, Feedback::ef21})
    EXPECT_NE(
        error_of([&] { plan(kind, 1.5); }).find("toy: error feedback diverges with this code"),
        std::string::npos);
}

TEST(ExchangePlan, IsPrintedForPeopleAndPrograms) {
  const ExchangePlan plan = plan_of({"workers=4", "compression.method=dgc"});
  const std::string table = exchange_table(plan, 4);
  for (const char* word : {"layer0.weight", "linear", "(24, 3072)", "dgc", "compressed",
                           "all_gather", "from epoch 0, ratio 0.001", "state of the methods"})
    EXPECT_NE(table.find(word), std::string::npos) << word << " in\n" << table;
  const nlohmann::json json = nlohmann::json::parse(exchange_json(plan, 4));
  EXPECT_EQ(json["workers"], 4);
  EXPECT_EQ(json["layers"].size(), plan.layers.size());
  EXPECT_EQ(json["layers"][0]["numel"], plan.layers[0].numel);
  EXPECT_EQ(json["phases"][0]["bytes_sent"], plan.phases[0].bytes_sent);
  EXPECT_EQ(json["state_bytes"], plan.state_bytes);
}

}  // namespace
}  // namespace wisp
