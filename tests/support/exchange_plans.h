// Plans of exchanges for tests. Any thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "apps/setup/exchange_plan.h"
#include "tests/support/tiny_run.h"

namespace wisp {

/// The plan of a tiny run.
inline ExchangePlan plan_of(const Overrides& overrides) {
  return Prepared(tiny_config(overrides)).exchange();
}

/// Whether one remark contains all of the texts.
inline bool remarks_on(const ExchangePlan& plan, const std::vector<std::string>& texts) {
  return std::any_of(plan.remarks.begin(), plan.remarks.end(), [&](const std::string& remark) {
    return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return remark.find(text) != std::string::npos;
    });
  });
}

/// Segments with numbers and sizes, as a model has them.
inline std::vector<Segment> segments_of(const std::vector<Segment>& shapes) {
  std::vector<Segment> segments = shapes;
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].id = static_cast<int>(i);
    segments[i].numel = segments[i].shape.numel();
  }
  return segments;
}

}  // namespace wisp
