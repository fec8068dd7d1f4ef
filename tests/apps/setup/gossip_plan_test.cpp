// Tests of the plans of workers with weights of their own: gossip and local SGD.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/lab/exchange_table.h"
#include "distributed/exchange/wire_header.h"
#include "distributed/gossip/mixing.h"
#include "tests/support/exchange_plans.h"

namespace wisp {
namespace {

const LayerPlan& layer_of(const ExchangePlan& plan, const std::string& name) {
  return *std::find_if(plan.layers.begin(), plan.layers.end(),
                       [&](const LayerPlan& layer) { return layer.name == name; });
}

TEST(GossipPlan, HasWhatEachNeighbourIsTold) {
  const ExchangePlan plan = plan_of(
      {"workers=4", "compression.method=choco", "gossip.code=fp16", "gossip.graph=0-1,1-2,2-3"});
  ASSERT_TRUE(plan.neighbourhood);
  EXPECT_EQ(plan.neighbourhood->degree, 2);
  EXPECT_NEAR(plan.neighbourhood->spectral_gap, Mixing("0-1,1-2,2-3", 4).spectral_gap(), 1e-12);
  double sum = 0.0;
  for (const LayerPlan& layer : plan.layers) {
    EXPECT_EQ(layer.method, "choco fp16");
    EXPECT_EQ(layer.rounds, std::vector<Collective>{Collective::neighbours});
    EXPECT_FALSE(layer.exact);
    // 2 bytes for each number and a header, to two neighbours
    EXPECT_EQ(layer.bytes_sent, 2.0 * (2.0 * static_cast<double>(layer.numel) + kHeaderBytes));
    EXPECT_EQ(layer.state_bytes, 8 * layer.numel);  // pull and known
    sum += 2.0 * 2.0 * static_cast<double>(layer.numel);
  }
  EXPECT_GE(plan.phases.back().bytes_sent, sum);
  EXPECT_TRUE(remarks_on(plan, {"gossip on a graph of 4 workers, degree 2, spectral gap 0."}));
}

TEST(GossipPlan, ItsTotalIsWhatARunSends) {
  for (const Overrides& method :
       {Overrides{"compression.method=dpsgd"},
        Overrides{"compression.method=dcd", "gossip.code=ef_signsgd", "gossip.graph=complete"},
        Overrides{"compression.method=choco", "gossip.code=topk", "compression.ratio=0.05"},
        Overrides{"compression.method=choco", "gossip.code=topk", "compression.ratio=0.99"},
        Overrides{"compression.method=local_sgd", "local_sgd.period=4"},
        Overrides{"compression.method=local_sgd", "local_sgd.period=2",
                  "local_sgd.average_momentum=true"},
        Overrides{"compression.method=local_sgd", "local_sgd.period=2", "optimizer.kind=adamw",
                  "optimizer.lr=0.001", "local_sgd.average_momentum=true"}}) {
    const Overrides overrides = method + Overrides{"workers=4"};
    const PhasePlan phase = plan_of(overrides).phases.back();
    with_replicas(tiny_config(overrides), [&](ReplicaTest& test) {
      test.steps(0, 1);  // gossip sends nothing in step 0
      double sent = 0.0;
      for (int64_t step = 1; step < 5; ++step) {  // whole periods
        test.steps(step, 1);
        const double status = 24.0;  // 16 bytes, reduced among 4
        sent +=
            0.25 * (static_cast<double>(test.replica.synchronizer().cost().bytes_sent) - status);
      }
      // a reduction's shares are whole elements; units share a header; payloads vary
      EXPECT_LE(sent, phase.bytes_sent + 100.0) << method[0] << " " << method[1 % method.size()];
      EXPECT_GE(sent, 0.85 * phase.bytes_sent) << method[0] << " " << method[1 % method.size()];
    });
  }
}

TEST(GossipPlan, SaysWhatIsExact) {
  const Overrides choco = {"workers=4",
                           "compression.method=choco",
                           "gossip.code=topk",
                           "compression.ratio=0.99",
                           "compression.warmup=list",
                           "compression.warmup_list=[1.0]",
                           "compression.warmup_epochs=1"};
  const ExchangePlan plan = plan_of(choco);
  ASSERT_EQ(plan.phases.size(), 2u);
  EXPECT_EQ(plan.phases[0].warm_up, plan.phases[0].units);
  EXPECT_EQ(plan.phases[1].more_than_dense, plan.phases[1].units);
  EXPECT_EQ(plan.phases[1].bytes_sent, plan.phases[0].bytes_sent);
  EXPECT_TRUE(layer_of(plan, "layer0.weight").exact);
  EXPECT_TRUE(remarks_on(
      plan, {"from epoch 1 on, ratio 0.99", "choco topk would send", "these layers go exact"}));
  const std::string table = exchange_table(plan, 4);
  EXPECT_NE(table.find("exact (guard)"), std::string::npos) << table;

  const ExchangePlan off = plan_of(choco + Overrides{"compression.guard=false"});
  EXPECT_GT(off.phases[1].bytes_sent, plan.phases[1].bytes_sent);
  EXPECT_TRUE(remarks_on(off, {"compression.guard is off"}));
}

TEST(GossipPlan, SaysHowOftenLocalSgdAverages) {
  const ExchangePlan plan =
      plan_of({"workers=4", "compression.method=local_sgd", "local_sgd.period=4"});
  EXPECT_EQ(plan.period, 4);
  EXPECT_EQ(plan.phases.back().bytes_sent, 0.25 * plan.phases.back().bytes_dense);
  for (const LayerPlan& layer : plan.layers) {
    EXPECT_EQ(layer.method, "local_sgd");
    EXPECT_EQ(layer.bytes_sent, 0.25 * layer.bytes_dense);
    EXPECT_EQ(layer.state_bytes, 0);
  }
  const std::string table = exchange_table(plan, 4);
  EXPECT_NE(table.find("all_reduce every 4 steps"), std::string::npos) << table;
  const nlohmann::json json = nlohmann::json::parse(exchange_json(plan, 4));
  EXPECT_EQ(json.at("period"), 4);
  EXPECT_EQ(json.count("degree"), 0u);
}

TEST(GossipPlan, HasTheGraphForPrograms) {
  const ExchangePlan plan = plan_of({"workers=4", "compression.method=dpsgd"});
  const nlohmann::json json = nlohmann::json::parse(exchange_json(plan, 4));
  EXPECT_EQ(json.at("degree"), 2);
  EXPECT_NEAR(json.at("spectral_gap").get<double>(), 2.0 / 3.0, 1e-12);
  EXPECT_EQ(json.at("layers")[0].at("path"), "exact");
  EXPECT_EQ(json.at("layers")[0].at("collectives")[0], "neighbours");
}

}  // namespace
}  // namespace wisp
