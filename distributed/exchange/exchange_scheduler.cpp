#include "distributed/exchange/exchange_scheduler.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {

void ExchangeScheduler::begin(std::span<const Slot> slots, Items items) {
  slots_ = slots;
  items_ = items;
  ready_.clear();
  measured_.clear();
  measuring_ = measured_items_ = 0;
  prepared_.assign(static_cast<size_t>(items.all), 0);
  encoded_rounds_.assign(static_cast<size_t>(items.units), 0);
  slot_ = 0;
  phase_ = Phase::idle;
}

/// What goes before everything that the slot under way may need.
std::optional<Action> ExchangeScheduler::urgent() const {
  if (may_prepare()) return Action{Action::Kind::prepare, measured_.front()};
  const size_t next = slot_ + (phase_ != Phase::idle);
  if (ready_.empty() || next >= slots_.size()) return {};
  const bool lacking = slots_[next].round == 0 && !can_start(slots_[next]);
  return lacking ? std::optional(Action{Action::Kind::measure, ready_.front()}) : std::nullopt;
}

Action ExchangeScheduler::next() const {
  if (const auto action = urgent()) return *action;
  if (slot_ == slots_.size()) return {};
  const int slot = static_cast<int>(slot_);
  if (phase_ == Phase::checked) return {Action::Kind::decode, slot};
  if (phase_ == Phase::arrived) return {Action::Kind::advance, slot};
  if (phase_ == Phase::idle && can_start(slots_[slot_])) return {Action::Kind::start, slot};
  if (items_.ahead && !ready_.empty()) return {Action::Kind::measure, ready_.front()};
  return {Action::Kind::wait, -1};
}

bool ExchangeScheduler::can_start(const Slot& slot) const {
  const auto encoded = [&](int unit) {
    return encoded_rounds_[static_cast<size_t>(unit)] > slot.round;
  };
  const auto prepared = [&](int segment) {
    return prepared_[static_cast<size_t>(items_.item_of[static_cast<size_t>(segment)])] != 0;
  };
  return std::ranges::all_of(slot.units, encoded) && std::ranges::all_of(slot.dense, prepared);
}

void ExchangeScheduler::measuring(int item) {
  WISP_CHECK(!ready_.empty() && ready_.front() == item, "item ", item, " was measured out of turn");
  ready_.pop_front();
  ++measuring_;
}

void ExchangeScheduler::measured(int item) {
  WISP_CHECK(measuring_-- > 0, "item ", item, " was measured unasked");
  measured_.push_back(item);
  ++measured_items_;
}

void ExchangeScheduler::prepared(int item) {
  WISP_CHECK(may_prepare() && measured_.front() == item, "item ", item, " was prepared too early");
  measured_.pop_front();
  prepared_[static_cast<size_t>(item)] = 1;
}

void ExchangeScheduler::encoded(int unit, int round) {
  int& rounds = encoded_rounds_[static_cast<size_t>(unit)];
  rounds = std::max(rounds, round + 1);
}

/// Throws Error if the slot under way is in another phase than `from`.
void ExchangeScheduler::move(Phase from, Phase to, const char* event) {
  WISP_CHECK(slot_ < slots_.size() && phase_ == from, "slot ", slot_, " was ", event,
             " out of turn");
  phase_ = to;
}

void ExchangeScheduler::started(bool on_wire) {
  move(Phase::idle, on_wire ? Phase::on_wire : Phase::checked, "started");
}

void ExchangeScheduler::arrived() {
  if (phase_ != Phase::arrived) move(Phase::on_wire, Phase::arrived, "reported as arrived");
}

void ExchangeScheduler::advanced(bool all) {
  move(Phase::arrived, all ? Phase::checking : Phase::on_wire, "advanced");
}

void ExchangeScheduler::checked() { move(Phase::checking, Phase::checked, "checked"); }

void ExchangeScheduler::decoded() {
  move(Phase::checked, Phase::idle, "decoded");
  ++slot_;
}

}  // namespace wisp
