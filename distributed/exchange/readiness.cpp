#include "distributed/exchange/readiness.h"

#include <string>

#include "core/base/error.h"

namespace wisp {

Readiness::Readiness(const FlatParameters& parameters, const Cut& cut)
    : parameters_(parameters),
      cut_(cut),
      item_of_(parameters.segments().size(), -1),
      awaited_(parameters.segments().size(), 0),
      expected_(cut.units.size() + cut.buckets.size()),
      events_(expected_.size()) {
  for (int item = 0; item < items(); ++item) {
    const std::vector<int>& segments = segments_of(item);
    for (const int id : segments) item_of_[static_cast<size_t>(id)] = item;
    expected_[static_cast<size_t>(item)] = static_cast<int>(segments.size());
    awaited_items_ += !segments.empty();
  }
}

const std::vector<int>& Readiness::segments_of(int item) const {
  const auto index = static_cast<size_t>(item);
  const size_t units = cut_.units.size();
  return index < units ? cut_.units[index].segments : cut_.buckets[index - units].dense;
}

void Readiness::begin() {
  missing_ = expected_;
  awaited_.assign(awaited_.size(), 1);
}

std::optional<int> Readiness::complete(const Segment& segment, Stream& stream) {
  char& awaited = awaited_[static_cast<size_t>(segment.id)];
  WISP_CHECK(awaited, "the gradient of ", segment.name, " became complete outside a step, or ",
             "twice in one");
  awaited = 0;
  const int item = item_of_[static_cast<size_t>(segment.id)];
  if (--missing_[static_cast<size_t>(item)] > 0) return std::nullopt;
  events_[static_cast<size_t>(item)].record(stream);
  return item;
}

void Readiness::check_complete() const {
  std::string names;
  for (const Segment& segment : parameters_.segments()) {
    if (awaited_[static_cast<size_t>(segment.id)])
      names += (names.empty() ? "" : ", ") + segment.name;
  }
  WISP_CHECK(names.empty(), "backward gave no gradient to ", names,
             ": freeze what the loss does not use");
}

}  // namespace wisp
