// The description of what travels: a collective, its element type and its size. A compressor
// declares a message for each round of a unit, and a communicator carries it. Values; any thread.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace wisp {

/// The exchange of a message: none in this round; a collective; `pair`, between two ranks each;
/// or `neighbours`, from each worker to its neighbours in gossip's graph.
enum class Collective { none, all_reduce, all_gather, all_to_all, pair, neighbours };
enum class ReduceOp { sum, max };

/// The message of one unit in one round. It is equal on all ranks, except for `to` and `from`.
struct Message {
  Collective kind = Collective::none;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  int64_t bytes = 0;      // bytes per destination; the capacity if `variable`
  bool variable = false;  // the used bytes differ by rank and step; Outlet::used holds their number
  int to = -1, from = -1;  // partners of a pair message; -1: idle in this round

  bool operator==(const Message&) const = default;
};

}  // namespace wisp
