// Which method compresses which parameter. Pure: a function of the configuration and the list of
// segments.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/io/config.h"
#include "core/parameter.h"

namespace wisp {

/// One row of [[compression.policy]]; what it does not say fits everything.
struct PolicyRule {
  std::string name = "*";  // glob over the parameter's path: * any characters, ? one
  std::string kind = "*";  // glob over the kind of the parameter's layer: conv, linear, norm, …
  int64_t rank = -1;       // of the shape; -1: any
  int64_t min_numel = 0;
  int64_t max_numel = -1;  // -1: no limit
  std::string method;
  Config options;     // the method's own keys, without "compression."; they win over the run's
  std::string where;  // "file:line", for messages

  /// Binds the keys of one row.
  static PolicyRule bind(Config& row);
  bool fits(const Segment& segment) const;
};

/// The rows in their order. Throws Error with file:line for an unknown key or method, or a row
/// without a method.
std::vector<PolicyRule> read_policy(Config& config);

constexpr int kNoRule = -1, kDenseRule = -2;

/// Each segment's rule, the first that fits. If none does, kNoRule: the run's own method takes it;
/// or, if that method's traits say `dense_1d`, kDenseRule for segments of rank 0 or 1.
std::vector<int> choose_rules(std::span<const Segment> segments, std::span<const PolicyRule> rules,
                              bool dense_1d);
/// A remark on each rule that is not among the `chosen`.
std::vector<std::string> remarks_on_idle_rules(std::span<const PolicyRule> rules,
                                               std::span<const int> chosen);

}  // namespace wisp
