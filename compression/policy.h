// The policy: rules that assign a compression method to each parameter. Pure functions of the
// configuration and the list of segments; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/io/config.h"
#include "core/parameter.h"

namespace wisp {

/// One row of [[compression.policy]]. An omitted key matches every segment.
struct PolicyRule {
  std::string name = "*";  // glob over the parameter's path: * any characters, ? one
  std::string kind = "*";  // glob over the kind of the parameter's layer: conv, linear, norm, …
  int64_t rank = -1;       // rank of the shape; -1: any
  int64_t min_numel = 0;
  int64_t max_numel = -1;  // -1: no limit
  std::string method;
  Config options;     // the method's own keys, without "compression."; they override the run's keys
  std::string where;  // "file:line", for messages

  /// Binds the keys of one row.
  static PolicyRule bind(Config& row);
  bool fits(const Segment& segment) const;
};

/// Reads the rows in order. Throws Error with file:line for an unknown key or method, or a row
/// without a method.
std::vector<PolicyRule> read_policy(Config& config);

constexpr int kNoRule = -1, kDenseRule = -2;

/// The index of the first rule that fits each segment. If none fits, kNoRule selects the run's own
/// method; if that method's traits have `dense_1d`, segments of rank 0 or 1 get kDenseRule.
std::vector<int> choose_rules(std::span<const Segment> segments, std::span<const PolicyRule> rules,
                              bool dense_1d);
/// A remark on each rule that is not in `chosen`.
std::vector<std::string> remarks_on_idle_rules(std::span<const PolicyRule> rules,
                                               std::span<const int> chosen);

}  // namespace wisp
