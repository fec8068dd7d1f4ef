// Gossip: every worker tells only its neighbours in a graph what a GossipMethod says, compressed by
// codes, unit by unit and bucket by bucket. Belongs to the comm thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/exchange/unit_exchange.h"
#include "distributed/gossip/told_unit.h"
#include "distributed/own_weights/own_weights.h"
#include "distributed/synchronizer_recipe.h"

namespace wisp {

struct GossipOptions {
  BucketOptions buckets;
  Scope scope = Scope::layer;
  bool guard = true;
  std::function<double(double epoch)> ratio;  // kept / total for sparse codes; empty: 1
};

class Gossip final : public WeightExchange {
 public:
  /// `code_of[id]` is each segment's index into `codes`. The references in `site` outlive it.
  Gossip(const SynchronizerSite& site, std::shared_ptr<GossipMethod> method,
         std::shared_ptr<const Mixing> mixing, std::span<const std::shared_ptr<const Code>> codes,
         const std::vector<int>& code_of, const GossipOptions& options);

  void begin(const StepInfo& info, Courier& courier) override;
  void travel(const StepInfo& info, Courier& courier) override;
  void after_update(const StepInfo& info, Courier& courier) override;
  uint64_t hash() const override { return units_.step_plan().hash() ^ mixing_->hash(); }
  std::vector<SavedState> state() override;
  /// Names the graph, because the state describes the neighbours.
  std::string layout() const override { return std::to_string(mixing_->hash()); }

 private:
  bool has_news(const StepInfo& info) const { return info.applied != *told_.data<int64_t>(); }
  std::vector<int> units_in_order() const;
  GossipArenas arenas() const;

  const SynchronizerSite site_;
  const std::shared_ptr<const Mixing> mixing_;
  const std::shared_ptr<GossipMethod> method_;
  const GossipOptions options_;
  std::vector<Method> told_units_;  // indexed by code
  UnitExchange units_;
  Tensor told_;  // (1) i64: the update that the neighbours were told of last
};

}  // namespace wisp
