// What an optimizer's loops run over: stretches of the arenas that are treated alike.
#pragma once

#include <span>
#include <vector>

#include "core/parameter.h"
#include "core/train/update_rule.h"

namespace wisp {

/// Neighbouring segments of one rule, with the padding between them (which stays zero).
struct UpdateRange {
  int64_t begin = 0, end = 0;
  int first = 0;  // segment
  UpdateRule rule = UpdateRule::gradient;
  bool decay = false;
};

/// The trained segments as ranges, in their order; those that differ in `number`, if it is given,
/// are apart. Throws Error unless there is a rule for each.
std::vector<UpdateRange> update_ranges(const FlatParameters& parameters,
                                       std::span<const UpdateRule> rules,
                                       std::span<const int64_t> number = {});

/// UpdateRule::update, which is the same for all optimizers: w -= lr · g.
void subtract_update(const Context& context, const FlatParameters& parameters,
                     const UpdateRange& range, double lr);

}  // namespace wisp
