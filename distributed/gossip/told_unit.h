// One worker's side of a gossip method for a unit, as a compressor of one round: encodes the
// worker's message, and adds up those of its neighbours. Belongs to the comm thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "distributed/gossip/gossip_method.h"
#include "distributed/gossip/mixing.h"

namespace wisp {

class ToldUnit final : public Compressor {
 public:
  /// With `guard`, exact numbers are sent while the code would send more.
  ToldUnit(std::shared_ptr<const GossipMethod> method, std::shared_ptr<const Mixing> mixing,
           std::shared_ptr<const Code> code, bool guard);

  Traits traits() const override;
  std::vector<StateSpec> state(const UnitSpec&, int workers) const override;
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override;
  Message message(const UnitSpec&, const StepInfo&, int round) const override;
  void encode(Context&, Unit&, const StepInfo&, int round, std::span<const Outlet>) override;
  void decode(Context&, Unit&, const StepInfo&, int round, std::span<const Payload>) override;

 private:
  const Code& code_for(const UnitSpec& spec, const StepInfo& info) const;
  double scale_of(const Code& code, const UnitSpec& spec) const;

  std::shared_ptr<const GossipMethod> method_;
  std::shared_ptr<const Mixing> mixing_;
  std::shared_ptr<const Code> code_, exact_;
  bool guard_;
};

/// The guard of gossip: whether `message` is larger than a unit's exact numbers.
bool sends_more_than_exact(const Message& message, const UnitSpec& spec);

}  // namespace wisp
