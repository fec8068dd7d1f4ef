// A check that all ranks have the same named values, made before any of them is used. Replicas that
// start with different weights or settings stay different, and no later collective would notice.
// Called by the thread that calls the communicator.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace wisp {

struct NamedValue {
  std::string name, value;
};

/// A line for each name whose value differs between ranks, from each rank's values in rank order:
/// "optimizer.lr: ranks 0, 2-3 have 0.05, rank 1 has 0.5". At most about 800 bytes: long values are
/// cut, and names without room are counted. Empty if all ranks agree.
std::string disagreement(std::span<const std::vector<NamedValue>> ranks);

/// Throws Error on every rank if the ranks disagree, with rank 0's text of the disagreement.
/// Collective. Ranks exchange a hash of their values, and the values only if the hashes differ.
void check_agreement(Communicator& communicator, std::span<const NamedValue> values);

}  // namespace wisp
