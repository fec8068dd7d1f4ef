#include "compression/policy.h"

#include <algorithm>

#include "compression/compressor.h"
#include "core/io/glob.h"

namespace wisp {

PolicyRule PolicyRule::bind(Config& row) {
  PolicyRule rule;
  row.bind("name", rule.name, "glob over parameter names: * any characters, ? one");
  row.bind("kind", rule.kind,
           "glob over the kinds of layers: conv, linear, norm, bias, or a layer's own kind");
  row.bind("rank", rule.rank, "rank of the parameter's shape; -1: any");
  row.bind("min_numel", rule.min_numel, "smallest number of elements");
  row.bind("max_numel", rule.max_numel, "largest number of elements; -1: no limit");
  row.bind("method", rule.method, "compression method, or none to leave it dense");
  rule.options = row.table("options", "the method's own keys, without \"compression.\"");
  rule.where = row.where("method");
  return rule;
}

bool PolicyRule::fits(const Segment& segment) const {
  return glob(name, segment.name) && glob(kind, segment.kind) &&
         (rank < 0 || segment.shape.rank() == rank) && segment.numel >= min_numel &&
         (max_numel < 0 || segment.numel <= max_numel);
}

std::vector<PolicyRule> read_policy(Config& config) {
  std::vector<PolicyRule> rules;
  for (Config& row : config.rows(
           "compression.policy",
           "rules: name, kind, rank, min_numel, max_numel -> method, options; the first match "
           "wins")) {
    const PolicyRule& rule = rules.emplace_back(PolicyRule::bind(row));
    row.finish();
    try {
      CompressorRegistry::instance().find("compression method", rule.method);
    } catch (const Error& error) {
      throw Error(rule.where + ": " + error.what());
    }
  }
  return rules;
}

std::vector<int> choose_rules(std::span<const Segment> segments, std::span<const PolicyRule> rules,
                              bool dense_1d) {
  std::vector<int> chosen;
  for (const Segment& segment : segments) {
    const auto rule =
        std::ranges::find_if(rules, [&](const PolicyRule& r) { return r.fits(segment); });
    if (rule != rules.end()) {
      chosen.push_back(static_cast<int>(rule - rules.begin()));
    } else {
      chosen.push_back(dense_1d && segment.shape.rank() <= 1 ? kDenseRule : kNoRule);
    }
  }
  return chosen;
}

std::vector<std::string> remarks_on_idle_rules(std::span<const PolicyRule> rules,
                                               std::span<const int> chosen) {
  std::vector<std::string> remarks;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (std::ranges::count(chosen, static_cast<int>(i)) == 0)
      remarks.push_back(rules[i].where + ": this rule of compression.policy decides nothing");
  }
  return remarks;
}

}  // namespace wisp
