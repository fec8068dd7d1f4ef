// A cache of objects that a library makes for a shape, at a cost. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>

namespace wisp {

/// Keeps the `most` most recently used objects, each under its key.
template <class Key, class Thing>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(int64_t most) : most_(most) {}

  int64_t size() const { return static_cast<int64_t>(things_.size()); }

  /// Returns the object cached under `key`, or adds the result of make() and drops the least
  /// recently used object if the cache is full. The reference is valid until the next call. If
  /// make() throws, the cache does not change.
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
  std::list<std::pair<Key, Thing>> things_;  // the most recently used is first
};

}  // namespace wisp
