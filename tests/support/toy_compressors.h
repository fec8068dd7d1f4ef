// Toy methods that speak in every way a compressor can. All are exact on gradients of small
// integers: what they leave is bit for bit the sum over workers. One worker's comm thread each.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "compression/compressor.h"

namespace wisp {

/// Two rounds: the maximum over workers gives each field a scale (a power of two), then the scaled
/// values are summed.
std::unique_ptr<Compressor> toy_scaled_sum();

/// One round of variable size: (index, value) of the elements that are not zero, gathered.
std::unique_ptr<Compressor> toy_nonzeros();

/// All-to-all of the elements to their owners (shares of different sizes), who send the sums to
/// all.
std::unique_ptr<Compressor> toy_owners();

/// A reduction tree of pair messages, in which ranks fall idle, then a broadcast of the root's sum.
/// With `variable`, messages end at the last element that is not zero.
std::unique_ptr<Compressor> toy_tree(bool variable = false);

/// A round without a message, then a sum of what it left in scratch.
std::unique_ptr<Compressor> toy_silent_round();

/// Updates 0, 2, … send the even positions and keep the odd ones in a per-rank residual; updates 1,
/// 3, … send all: every second sum is complete. Counts updates in shared state of the whole unit,
/// and throws Error if the count is not StepInfo::applied.
std::unique_ptr<Compressor> toy_parity();

/// Gathers all elements (more bytes than dense for three workers and more) before step
/// `cheap_from`, sums them from then on. Counts calls of engage() in *engaged.
std::unique_ptr<Compressor> toy_guarded(int64_t cheap_from, std::atomic<int>* engaged);

/// What `inner` does, with `before` called first: phase "encode" or "decode".
using ToyHook = std::function<void(const char* phase, const Unit&, const StepInfo&, int round)>;
std::unique_ptr<Compressor> toy_hooked(std::unique_ptr<Compressor> inner, ToyHook before);

/// What `inner` does, with other traits.
std::unique_ptr<Compressor> toy_with_traits(std::unique_ptr<Compressor> inner, Traits traits);

}  // namespace wisp
