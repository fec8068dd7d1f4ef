#include "distributed/exchange/exchange_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <random>

#include "core/base/error.h"

namespace wisp {
namespace {

using Next = Action::Kind;

/// Steps of drawn models, in which whatever is under way may end at any time, in any order.
class RandomStep {
 public:
  explicit RandomStep(uint64_t seed) : draws_(seed) {
    draw_model();
    slots_ = make_slots(cut_, rounds_, DType::f32);
    whole_norm_ = draw(2) == 0;
    measures_ahead_ = draw(3) > 0;
    scheduler_.begin(slots_, {.units = units(),
                              .all = items(),
                              .item_of = item_of_,
                              .measured_first = whole_norm_ ? awaited_ : 0,
                              .ahead = measures_ahead_});
  }

  /// Runs the step to its end. Fails the test if anything happens out of order, or nothing can.
  void run() {
    for (int actions = 0; actions < 10000; ++actions) {
      while (!ahead_.empty() && draw(3) == 0) end_one();
      const Action action = scheduler_.next();
      ASSERT_EQ(action, expected());
      ASSERT_EQ(scheduler_.asks_wire(), phases_ > 0 && !arrived_ && !urgent());
      if (action.kind == Next::done) return check_end();
      ASSERT_NO_FATAL_FAILURE(carry_out(action));
    }
    FAIL() << "the step does not end";
  }

  size_t slots() const { return slots_.size(); }

 private:
  int draw(int below) { return static_cast<int>(draws_() % static_cast<uint64_t>(below)); }
  int units() const { return static_cast<int>(cut_.units.size()); }
  int items() const { return units() + static_cast<int>(cut_.buckets.size()); }

  void draw_model() {
    static constexpr Collective kKinds[] = {Collective::all_gather, Collective::all_reduce,
                                            Collective::all_to_all, Collective::pair,
                                            Collective::none};
    const int buckets = 1 + draw(4);
    std::vector<int> dense_bucket;  // indexed by segment; -1: of a unit
    for (int b = 0; b < buckets; ++b) {
      Bucket bucket;
      for (int u = draw(4); u > 0; --u) {
        bucket.units.push_back(units());
        cut_.units.push_back({.segments = {static_cast<int>(item_of_.size())}, .bucket = b});
        item_of_.push_back(units() - 1);
        dense_bucket.push_back(-1);
        UnitRounds rounds{.compressed = draw(4) > 0, .messages = {}};
        for (int r = rounds.compressed ? 1 + draw(3) : 0; r > 0; --r) {
          rounds.messages.push_back({.kind = kKinds[draw(std::size(kKinds))],
                                     .dtype = DType::f32,
                                     .bytes = 8,
                                     .variable = draw(2) == 0});
        }
        rounds_.push_back(rounds);
      }
      for (int s = draw(3); s > 0; --s) {
        bucket.dense.push_back(static_cast<int>(item_of_.size()));
        item_of_.push_back(-1);
        dense_bucket.push_back(b);
      }
      cut_.buckets.push_back(bucket);
    }
    for (size_t s = 0; s < item_of_.size(); ++s)
      if (dense_bucket[s] >= 0) item_of_[s] = units() + dense_bucket[s];
    prepared_.assign(static_cast<size_t>(items()), 0);
    measured_.assign(static_cast<size_t>(items()), 0);
    encoded_.assign(static_cast<size_t>(units()), 0);
    for (int item = 0; item < items(); ++item) {
      if (std::ranges::count(item_of_, item) == 0) continue;
      ++awaited_;
      ahead_.push_back([this, item] {
        to_measure_.push_back(item);
        scheduler_.ready(item);
      });
    }
  }

  bool can_start(const Slot& slot) const {
    for (const int unit : slot.units)
      if (encoded_[static_cast<size_t>(unit)] <= slot.round) return false;
    for (const int segment : slot.dense)
      if (prepared_[static_cast<size_t>(item_of_[static_cast<size_t>(segment)])] == 0) return false;
    return true;
  }
  std::optional<Action> urgent() const {
    const bool all = std::ranges::count(measured_, 1) == awaited_;
    if (!to_prepare_.empty() && (all || !whole_norm_))
      return Action{Next::prepare, to_prepare_.front()};
    if (!to_measure_.empty() && started_ < slots_.size() && slots_[started_].round == 0 &&
        !can_start(slots_[started_]))
      return Action{Next::measure, to_measure_.front()};
    return {};
  }
  /// The first action that applies, by the table in docs/architecture.md.
  Action expected() const {
    if (const auto action = urgent()) return *action;
    const auto slot = static_cast<int>(decoded_);
    if (checked_) return {Next::decode, slot};
    if (arrived_) return {Next::advance, slot};
    if (decoded_ == slots_.size()) return {Next::done, -1};
    if (started_ == decoded_ && can_start(slots_[started_])) return {Next::start, slot};
    if (measures_ahead_ && !to_measure_.empty()) return {Next::measure, to_measure_.front()};
    return {Next::wait, -1};
  }

  /// Lets something that is under way end.
  void end_one() {
    std::swap(ahead_[static_cast<size_t>(draw(static_cast<int>(ahead_.size())))], ahead_.back());
    const std::function<void()> event = ahead_.back();
    ahead_.pop_back();
    event();
  }

  void encode(int unit, int round) {
    const auto u = static_cast<size_t>(unit);
    ASSERT_LT(static_cast<size_t>(round), rounds_[u].messages.size());
    ahead_.push_back([this, unit, round, u] {
      encoded_[u] = round + 1;
      scheduler_.encoded(unit, round);
    });
  }

  void carry_out(const Action& action) {
    const auto index = static_cast<size_t>(action.index);
    switch (action.kind) {
      case Next::measure:
        to_measure_.pop_front();
        scheduler_.measuring(action.index);
        ahead_.push_back([this, index] {
          ++measured_[index];
          to_prepare_.push_back(static_cast<int>(index));
          scheduler_.measured(static_cast<int>(index));
        });
        break;
      case Next::prepare:
        to_prepare_.pop_front();
        if (action.index < units() && rounds_[index].compressed) encode(action.index, 0);
        ++prepared_[index];
        scheduler_.prepared(action.index);
        break;
      case Next::start:
        start(slots_[index]);
        break;
      case Next::advance:
        arrived_ = false;
        scheduler_.advanced(--phases_ == 0);
        travel();
        break;
      case Next::decode:
        checked_ = false;
        ++decoded_;
        for (const int unit : slots_[index].units) {
          const size_t next = static_cast<size_t>(slots_[index].round) + 1;
          if (next < rounds_[static_cast<size_t>(unit)].messages.size())
            encode(unit, static_cast<int>(next));
        }
        scheduler_.decoded();
        break;
      case Next::wait:
        ASSERT_FALSE(ahead_.empty()) << "waits for nothing";
        end_one();
        break;
      case Next::done:
        break;
    }
  }

  void start(const Slot& slot) {
    ++started_;
    phases_ = slot.message.kind == Collective::none ? 0 : 1 + draw(3);
    checked_ = phases_ == 0;
    scheduler_.started(phases_ > 0);
    if (phases_ > 0) travel();
  }

  /// Puts the next phase, or the check of the data, under way.
  void travel() {
    ahead_.push_back([this] {
      if (phases_ > 0) {
        arrived_ = true;
        scheduler_.arrived();
      } else {
        checked_ = true;
        scheduler_.checked();
      }
    });
  }

  void check_end() const {
    EXPECT_EQ(decoded_, slots_.size());
    for (const int item : item_of_) EXPECT_EQ(prepared_[static_cast<size_t>(item)], 1);
  }

  std::mt19937_64 draws_;
  Cut cut_;
  std::vector<UnitRounds> rounds_;
  std::vector<int> item_of_;
  std::vector<Slot> slots_;
  bool whole_norm_ = false, measures_ahead_ = true;
  int awaited_ = 0;
  ExchangeScheduler scheduler_;
  std::vector<std::function<void()>> ahead_;  // ends of what is under way
  std::deque<int> to_measure_, to_prepare_;
  std::vector<int> measured_, prepared_, encoded_;
  size_t started_ = 0, decoded_ = 0;
  int phases_ = 0;  // of the slot under way, not finished yet
  bool arrived_ = false, checked_ = false;
};

TEST(ExchangeScheduler, EndsEveryStepWithSlotsInOrderWhateverHappensWhen) {
  size_t slots = 0;
  for (uint64_t seed = 0; seed < 5000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomStep step(seed);
    slots += step.slots();
    step.run();
  }
  EXPECT_GT(slots, 20000u);
}

/// Three slots of one dense segment each; item b is the dense part of bucket b.
class DenseSlots : public ::testing::Test {
 protected:
  DenseSlots() {
    for (int b = 0; b < 3; ++b) {
      slots_[static_cast<size_t>(b)].bucket = b;
      slots_[static_cast<size_t>(b)].message.kind = Collective::all_reduce;
      slots_[static_cast<size_t>(b)].dense = {b};
    }
    scheduler_.begin(slots_, {.units = 0, .all = 3, .item_of = item_of_});
  }
  void prepare(int item) {
    scheduler_.ready(item);
    scheduler_.measuring(item);
    scheduler_.measured(item);
    scheduler_.prepared(item);
  }

  std::vector<int> item_of_{0, 1, 2};
  std::vector<Slot> slots_{3};
  ExchangeScheduler scheduler_;
};

TEST_F(DenseSlots, WhatTheNextSlotLacksGoesBeforeTheSlotThatArrived) {
  prepare(0);
  EXPECT_EQ(scheduler_.next(), (Action{Next::start, 0}));
  scheduler_.started(true);
  EXPECT_EQ(scheduler_.next().kind, Next::wait);
  scheduler_.arrived();
  EXPECT_EQ(scheduler_.next(), (Action{Next::advance, 0}));
  scheduler_.ready(1);
  EXPECT_EQ(scheduler_.next(), (Action{Next::measure, 1}));
  scheduler_.measuring(1);
  EXPECT_EQ(scheduler_.next(), (Action{Next::advance, 0}));
}

TEST_F(DenseSlots, WhatLaterSlotsNeedIsMeasuredWhileOneTravels) {
  prepare(0);
  prepare(1);
  scheduler_.started(true);
  scheduler_.ready(2);
  EXPECT_EQ(scheduler_.next(), (Action{Next::measure, 2}));
  scheduler_.arrived();
  EXPECT_EQ(scheduler_.next(), (Action{Next::advance, 0}));
}

TEST_F(DenseSlots, EventsOutOfTurnAreErrors) {
  EXPECT_THROW(scheduler_.arrived(), Error);
  EXPECT_THROW(scheduler_.decoded(), Error);
  EXPECT_THROW(scheduler_.measuring(0), Error);
  EXPECT_THROW(scheduler_.prepared(0), Error);
  prepare(0);
  scheduler_.started(true);
  EXPECT_THROW(scheduler_.started(true), Error);
  EXPECT_THROW(scheduler_.checked(), Error);
}

TEST_F(DenseSlots, ASlotWithoutMessagesIsDecodedAtOnce) {
  prepare(0);
  scheduler_.started(false);
  EXPECT_EQ(scheduler_.next(), (Action{Next::decode, 0}));
  scheduler_.decoded();
  EXPECT_EQ(scheduler_.next().kind, Next::wait);
}

}  // namespace
}  // namespace wisp
