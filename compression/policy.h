// Which method compresses which parameter. Pure: a function of the configuration and the list of
// segments.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/parameter.h"

namespace wisp {

/// One row of [[compression.policy]]; what it does not say fits everything.
struct PolicyRule {
  std::string name = "*";  // glob over the parameter's path: * any characters, ? one
  int64_t rank = -1;       // of the shape; -1: any
  int64_t min_numel = 0;
  int64_t max_numel = -1;  // -1: no limit
  std::string method;

  /// Binds the keys of one row.
  static PolicyRule bind(Config& row);
  bool fits(const Segment& segment) const;
};

/// The rows in their order. Throws Error with file:line for an unknown key or method, or a row
/// without a method.
std::vector<PolicyRule> read_policy(Config& config);

/// Each segment's method: that of the first rule that fits; else `method`, but "none" for segments
/// of rank 0 or 1 if `dense_1d` (the method's traits say so).
std::vector<std::string> choose_methods(std::span<const Segment> segments,
                                        std::span<const PolicyRule> rules,
                                        const std::string& method, bool dense_1d);

}  // namespace wisp
