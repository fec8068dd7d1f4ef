#include "compression/policy.h"

#include "compression/compressor.h"
#include "core/glob.h"

namespace wisp {
namespace {

PolicyRule read_rule(Config& row) {
  PolicyRule rule = PolicyRule::bind(row);
  row.finish();
  try {
    CompressorRegistry::instance().find("compression method", rule.method);
  } catch (const Error& error) {
    throw Error(row.where("method") + ": " + error.what());
  }
  return rule;
}

}  // namespace

PolicyRule PolicyRule::bind(Config& row) {
  PolicyRule rule;
  row.bind("name", rule.name, "glob over parameter names: * any characters, ? one");
  row.bind("rank", rule.rank, "rank of the parameter's shape; -1: any");
  row.bind("min_numel", rule.min_numel, "fewest elements");
  row.bind("max_numel", rule.max_numel, "most elements; -1: no limit");
  row.bind("method", rule.method, "compression method, or none to leave it dense");
  return rule;
}

bool PolicyRule::fits(const Segment& segment) const {
  return glob(name, segment.name) && (rank < 0 || segment.shape.rank() == rank) &&
         segment.numel >= min_numel && (max_numel < 0 || segment.numel <= max_numel);
}

std::vector<PolicyRule> read_policy(Config& config) {
  std::vector<PolicyRule> rules;
  for (Config& row :
       config.rows("compression.policy",
                   "rules name, rank, min_numel, max_numel -> method; first match wins"))
    rules.push_back(read_rule(row));
  return rules;
}

std::vector<std::string> choose_methods(std::span<const Segment> segments,
                                        std::span<const PolicyRule> rules,
                                        const std::string& method, bool dense_1d) {
  std::vector<std::string> methods;
  for (const Segment& segment : segments) {
    const bool dense = dense_1d && segment.shape.rank() <= 1;
    methods.push_back(dense ? "none" : method);
    for (const PolicyRule& rule : rules) {
      if (!rule.fits(segment)) continue;
      methods.back() = rule.method;
      break;
    }
  }
  return methods;
}

}  // namespace wisp
