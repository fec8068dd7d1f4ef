// A stream as its memory pools know it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace wisp {

struct StreamId {
  /// `ended` becomes true when the stream has ended: no handle of it is left, and its work is done.
  /// Without it, the stream never ends.
  StreamId(int64_t id, std::shared_ptr<const std::atomic<bool>> end = nullptr)
      : number(id), ended(std::move(end)) {}

  bool has_ended() const { return ended && ended->load(std::memory_order_acquire); }

  int64_t number;  // unique in the process
  std::shared_ptr<const std::atomic<bool>> ended;
};

}  // namespace wisp
