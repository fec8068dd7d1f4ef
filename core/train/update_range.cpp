#include "core/train/update_range.h"

#include "core/base/error.h"

namespace wisp {

std::vector<UpdateRange> update_ranges(const FlatParameters& parameters,
                                       std::span<const UpdateRule> rules,
                                       std::span<const int64_t> number) {
  const std::span<const Segment> segments = parameters.segments();
  WISP_CHECK(rules.size() == segments.size(), "optimizer: ", rules.size(), " rules for ",
             segments.size(), " segments");
  std::vector<UpdateRange> ranges;
  const auto joins = [&](const UpdateRange& range, const Segment& segment) {
    const auto id = static_cast<size_t>(segment.id), first = static_cast<size_t>(range.first);
    return rules[id] == range.rule && segment.decay == range.decay &&
           (number.empty() || number[id] == number[first]);
  };
  for (const Segment& segment : segments) {
    const UpdateRule rule = rules[static_cast<size_t>(segment.id)];
    if (ranges.empty() || !joins(ranges.back(), segment))
      ranges.push_back({segment.offset, segment.offset, segment.id, rule, segment.decay});
    ranges.back().end = segment.offset + segment.numel;
  }
  return ranges;
}

}  // namespace wisp
