// Agreement of all ranks about named values, checked before anything depends on them. Replicas that
// start apart, or are told different things, stay apart, and no later collective would notice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace wisp {

struct NamedValue {
  std::string name, value;
};

/// What of `ranks`, each rank's values in its order, is not the same for all, a line for each name:
/// "optimizer.lr: ranks 0, 2-3 have 0.05, rank 1 has 0.5". At most about 800 bytes: long values are
/// cut, and names that have no room are counted. Empty if all agree.
std::string disagreement(std::span<const std::vector<NamedValue>> ranks);

/// Throws Error with the disagreement on every rank, in rank 0's words, unless there is none.
/// Collective. Ranks exchange a hash of what they have, and what they have only if that differs.
void check_agreement(Communicator& communicator, std::span<const NamedValue> values);

}  // namespace wisp
