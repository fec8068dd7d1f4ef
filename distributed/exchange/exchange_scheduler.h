// The decisions of a comm thread in a step: what it does next, after what has happened so far. A
// state machine without threads, clocks, memory or connections, so a test or a simulator can drive
// it as well. It must not be used by two threads at once.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "distributed/exchange/slot.h"

namespace wisp {

/// What the comm thread does next.
struct Action {
  enum class Kind {
    measure,  // item: begin to take the norms of its gradients, report measuring()
    prepare,  // item: clip it, encode round 0 if it is a compressed unit, report prepared()
    start,    // slot: start its collective, report started()
    advance,  // slot: finish the phase that arrived, report advanced()
    decode,   // slot: decode its units, encode their next round, report decoded()
    wait,     // until something happens
    done      // the step's slots are complete
  };
  Kind kind = Kind::done;
  int index = -1;  // of the item or slot

  bool operator==(const Action&) const = default;
};

/// An item is a unit of the cut, or the dense segments of a bucket. It becomes ready, measured and
/// prepared, in this order. Slots travel one at a time: a slot is started, its phases arrive one
/// after the other, the data is checked, the slot is decoded.
class ExchangeScheduler {
 public:
  struct Items {
    int units = 0;                      // items 0 to units - 1
    int all = 0;                        // units and dense parts of buckets
    std::span<const int> item_of = {};  // indexed by segment; read for dense segments of slots
    /// Items to measure before the first is prepared: clipping may need the whole gradient's norm.
    int measured_first = 0;
    /// Whether items are measured, too, while the next slot lacks none.
    bool ahead = true;
  };

  /// Begins a step, which the spans' memory outlives.
  void begin(std::span<const Slot> slots, Items items);

  /// The next action: the first that applies, in the order of docs/architecture.md ("The life of a
  /// step"). Done if all slots are decoded. It stays the same until something is reported.
  Action next() const;
  /// Whether arrived() could change the next action. Until then nobody needs to look at the wire.
  bool asks_wire() const { return phase_ == Phase::on_wire && !urgent(); }

  // What has happened.
  /// The gradients of the item are complete.
  void ready(int item) { ready_.push_back(item); }
  void measuring(int item);
  /// The item's norms are known, or not needed.
  void measured(int item);
  void prepared(int item);
  /// The messages of a unit's round can be sent.
  void encoded(int unit, int round);
  /// `on_wire`: the slot's first phase is under way. If not, nothing of the slot travels.
  void started(bool on_wire);
  /// The phase under way can be finished without waiting. May be reported more than once.
  void arrived();
  /// `all`: no other phase follows; checked() follows.
  void advanced(bool all);
  /// The received data is what was sent.
  void checked();
  void decoded();

 private:
  enum class Phase { idle, on_wire, arrived, checking, checked };

  std::optional<Action> urgent() const;
  bool can_start(const Slot& slot) const;
  bool may_prepare() const {
    return !measured_.empty() && measured_items_ >= items_.measured_first;
  }
  void move(Phase from, Phase to, const char* event);

  std::span<const Slot> slots_;
  Items items_;
  std::deque<int> ready_;     // items to be measured
  std::deque<int> measured_;  // items to be prepared
  int measuring_ = 0;         // items under way from measuring() to measured()
  int measured_items_ = 0;
  std::vector<char> prepared_;       // indexed by item
  std::vector<int> encoded_rounds_;  // indexed by unit
  size_t slot_ = 0;                  // the slot under way, or the next one if there is none
  Phase phase_ = Phase::idle;        // of the slot under way
};

}  // namespace wisp
