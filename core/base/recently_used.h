// Things that a library makes for a shape, at a cost, kept for the next use of that shape. One
// thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>

namespace wisp {

/// Keeps the `most` things used last, each under its key.
template <class Key, class Thing>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(int64_t most) : most_(most) {}

  int64_t size() const { return static_cast<int64_t>(things_.size()); }

  /// What is kept under `key`, else what make() returns; then what was used longest ago goes if
  /// there are too many. Valid until the next call. If make() throws, all stays as it was.
  template <class Make>
  Thing& find(const Key& key, const Make& make) {
    const auto found = std::find_if(things_.begin(), things_.end(),
                                    [&](const auto& known) { return known.first == key; });
    if (found != things_.end()) {
      things_.splice(things_.begin(), things_, found);
    } else {
      things_.emplace_front(key, make());
      if (size() > most_) things_.pop_back();
    }
    return things_.front().second;
  }

 private:
  int64_t most_;
  std::list<std::pair<Key, Thing>> things_;  // the one used last is first
};

}  // namespace wisp
