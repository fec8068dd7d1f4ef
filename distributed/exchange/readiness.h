// A count of the complete gradients of a step, per item; an item is a unit, or the dense segments
// of a bucket. The compute thread counts. The comm thread waits for the events of complete items.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/device/stream.h"
#include "core/parameter.h"
#include "distributed/exchange/cut.h"

namespace wisp {

class Readiness {
 public:
  /// Items are the units of `cut`, then the dense segments of each bucket. Before begin(), no
  /// gradient is awaited. The arguments outlive this object.
  Readiness(const FlatParameters& parameters, const Cut& cut);

  int items() const { return static_cast<int>(expected_.size()); }
  /// Number of items that have segments.
  int awaited_items() const { return awaited_items_; }
  /// Ids of the item's segments, ascending.
  const std::vector<int>& segments_of(int item) const;
  /// The item of each segment.
  std::span<const int> item_of() const { return item_of_; }

  /// Begins a step: every segment is awaited.
  void begin();
  /// Records that a segment's gradient is complete on `stream`. Returns its item if it was the
  /// item's last. Throws Error if the segment is not awaited.
  std::optional<int> complete(const Segment& segment, Stream& stream);
  /// Throws Error with the segments' names if gradients are missing.
  void check_complete() const;

  /// The event that is recorded when the item becomes complete.
  const Event& event(int item) const { return events_[static_cast<size_t>(item)]; }

 private:
  const FlatParameters& parameters_;
  const Cut& cut_;
  std::vector<int> item_of_;   // indexed by segment
  std::vector<char> awaited_;  // indexed by segment
  std::vector<int> expected_;  // indexed by item: number of its segments
  std::vector<int> missing_;   // indexed by item: number of missing segments in this step
  std::vector<Event> events_;  // indexed by item
  int awaited_items_ = 0;
};

}  // namespace wisp
