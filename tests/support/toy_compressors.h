// Toy methods that together use every kind of message of a compressor. All are exact on gradients
// of small integers: the result is bit for bit the sum over workers. Each belongs to one worker's
// comm thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "compression/compressor.h"

namespace wisp {

/// Two rounds: the maximum over workers gives each field a scale (a power of two), then scaled
/// values are summed.
std::unique_ptr<Compressor> toy_scaled_sum();

/// One round of variable size, which gathers (index, value) of the elements that are not zero.
std::unique_ptr<Compressor> toy_nonzeros();

/// An all-to-all of the elements to their owners (shares of different sizes), which send the sums
/// to all ranks.
std::unique_ptr<Compressor> toy_owners();

/// A reduction tree of pair messages, in which ranks become idle, then the same pairs downwards
/// with rank 0's sum. With `variable`, messages end at the last element that is not zero.
std::unique_ptr<Compressor> toy_tree(bool variable = false);

/// A round without a message, then a sum of the values that it left in scratch.
std::unique_ptr<Compressor> toy_silent_round();

/// Updates 0, 2, … send the even positions and keep the odd ones in a per-rank residual. Updates 1,
/// 3, … send everything, so every second sum is complete. The method counts updates in shared state
/// of the whole unit, and throws Error if the count is not StepInfo::applied.
std::unique_ptr<Compressor> toy_parity();

/// Gathers all elements before step `cheap_from`, which takes more bytes than dense for three or
/// more workers, and sums them from then on. Counts calls of engage() in *engaged.
std::unique_ptr<Compressor> toy_guarded(int64_t cheap_from, std::atomic<int>* engaged);

/// Calls `before` and then `inner`, in phase "encode" or "decode".
using ToyHook = std::function<void(const char* phase, const Unit&, const StepInfo&, int round)>;
std::unique_ptr<Compressor> toy_hooked(std::unique_ptr<Compressor> inner, ToyHook before);

/// `inner` with other traits.
std::unique_ptr<Compressor> toy_with_traits(std::unique_ptr<Compressor> inner, Traits traits);

}  // namespace wisp
