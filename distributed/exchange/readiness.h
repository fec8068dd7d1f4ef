// Which gradients of a step are complete, counted per item: a unit, or the dense segments of a
// bucket. The compute thread counts; the comm thread waits for an item's event once it has been
// told of it.
#pragma once

#include <optional>
#include <vector>

#include "core/device/stream.h"
#include "core/parameter.h"
#include "distributed/exchange/cut.h"

namespace wisp {

class Readiness {
 public:
  /// Items are the units of `cut`, then its buckets' dense segments. Until begin() no gradient is
  /// awaited. The arguments outlive this object.
  Readiness(const FlatParameters& parameters, const Cut& cut);

  int items() const { return static_cast<int>(expected_.size()); }
  /// Items that have segments at all.
  int awaited_items() const { return awaited_items_; }
  /// Ids, ascending.
  const std::vector<int>& segments_of(int item) const;
  int item_of(int segment) const { return item_of_[static_cast<size_t>(segment)]; }

  /// A step begins: every segment is awaited.
  void begin();
  /// The item that this gradient, complete on `stream`, was the last of. Throws Error if it is not
  /// awaited.
  std::optional<int> complete(const Segment& segment, Stream& stream);
  /// Throws Error, with their names, if gradients are missing.
  void check_complete() const;

  /// Recorded when the item became complete.
  const Event& event(int item) const { return events_[static_cast<size_t>(item)]; }

 private:
  const FlatParameters& parameters_;
  const Cut& cut_;
  std::vector<int> item_of_;   // by segment
  std::vector<char> awaited_;  // by segment
  std::vector<int> expected_;  // by item: its segments
  std::vector<int> missing_;   // by item, in this step
  std::vector<Event> events_;  // by item
  int awaited_items_ = 0;
};

}  // namespace wisp
