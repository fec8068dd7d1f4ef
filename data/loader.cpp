#include "data/loader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace wisp {

Loader::Loader(const Examples& examples, const Deal& deal, LoaderOptions options)
    : examples_(examples),
      deal_(deal),
      options_(options),
      pieces_(examples.epoch(0, deal)),
      batches_(std::ssize(pieces_)) {
  WISP_CHECK(options_.threads >= 0 && options_.prefetch >= 0, "loader: ", options_.threads,
             " threads and prefetch ", options_.prefetch, ", expected 0 or more");
  slots_.resize(options_.threads == 0 ? 1 : static_cast<size_t>(options_.prefetch) + 1);
  for (int i = 0; i < options_.threads; ++i) threads_.push_back(std::make_unique<WorkQueue>());
}

Loader::~Loader() { abandon(true); }

void Loader::start_epoch(int64_t epoch, int64_t first) {
  WISP_CHECK(epoch >= 0, "loader: epoch ", epoch, ", expected 0 or more");
  WISP_CHECK(first >= 0 && first <= batches_, "loader: first batch ", first, " of an epoch of ",
             batches_);
  if (!following_.empty() && next_ == end() && epoch == epoch_ + 1 && first == 0) {
    begin_ = end();
    pieces_ = std::move(following_);
  } else {
    abandon(true);
    for (const auto& thread : threads_) thread->drain();
    abandon(false);
    if (epoch != epoch_) pieces_ = cut(epoch);
    begin_ = 0;
    next_ = posted_ = first;
  }
  following_.clear();
  epoch_ = epoch;
  started_ = true;
  if (!threads_.empty()) post_until(next_ + options_.prefetch);
}

std::optional<Batch> Loader::next() {
  WISP_CHECK(started_, "loader: next() before start_epoch()");
  if (next_ == end()) return std::nullopt;
  Slot& slot = slot_of(next_);
  if (threads_.empty()) {
    prepare(next_);
    fill_rows(slot);
  } else {
    post_until(next_ + 1 + options_.prefetch);
  }
  hand_out(slot);
  ++next_;
  return slot.buffer;
}

std::optional<Batch> Loader::ahead() {
  if (next_ >= std::min(posted_, end())) return std::nullopt;
  const Slot& slot = slot_of(next_);
  std::lock_guard lock(mutex_);
  if (slot.left > 0 || slot.failure) return std::nullopt;
  return slot.buffer;
}

std::vector<Piece> Loader::cut(int64_t epoch) const {
  std::vector<Piece> pieces = examples_.epoch(epoch, deal_);
  WISP_CHECK(std::ssize(pieces) == batches_, "loader: epoch ", epoch, " has ", pieces.size(),
             " batches, the first has ", batches_);
  return pieces;
}

void Loader::post_until(int64_t wanted) {
  const bool goes_on = deal_.training && wanted > end();
  if (goes_on && following_.empty()) following_ = cut(epoch_ + 1);
  const int64_t known = end() + std::ssize(following_);
  while (posted_ < std::min(wanted, known)) {
    const int64_t position = posted_++;
    prepare(position);
    for (const auto& thread : threads_)
      thread->post([this, position] { fill_rows(slot_of(position)); });
  }
}

/// Gives a batch its shape. From then on threads take its rows, and also threads that were posted
/// for the slot's batch before and came late.
void Loader::prepare(int64_t position) {
  const auto index = static_cast<size_t>((position - begin_) % batches_);
  const Piece& piece = (position < end() ? pieces_ : following_)[index];
  Slot& slot = slot_of(position);
  std::lock_guard lock(mutex_);
  slot.piece = &piece;
  slot.taken = slot.left = 0;
  slot.faults.clear();
  slot.failure = nullptr;
  Batch& batch = slot.buffer;
  try {
    examples_.shape(piece, batch);
  } catch (...) {
    slot.failure = std::current_exception();
    return;
  }
  batch.count = piece.count;
  batch.of_worker = piece.of_worker;
  batch.of_step = piece.of_step;
  batch.work = piece.work;
  batch.index = static_cast<int64_t>(index);
  batch.begins = piece.begins;
  batch.seed = piece.seed;
  batch.epoch = piece.epoch;
  slot.left = std::ssize(piece.rows);
  slot.faults.resize(piece.rows.size());
}

void Loader::fill_rows(Slot& slot) noexcept {
  std::unique_lock lock(mutex_);
  while (!abandoned_ && slot.taken < std::ssize(slot.faults)) {
    const int64_t row = slot.taken++;
    lock.unlock();
    std::string fault;
    std::exception_ptr failure;
    try {
      fault = examples_.fill(*slot.piece, row, slot.buffer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && (!slot.failure || row < slot.failed)) {
      slot.failure = std::move(failure);
      slot.failed = row;
    }
    slot.faults[static_cast<size_t>(row)] = std::move(fault);
    if (--slot.left > 0) continue;
    count_ignored(slot);
    changed_.notify_one();
  }
}

void Loader::count_ignored(Slot& slot) {
  Batch& batch = slot.buffer;
  batch.ignored = 0;
  if (batch.maker || slot.failure) return;
  const auto* targets = batch.targets.data<int32_t>();
  batch.ignored = batch.targets.numel() == batch.count
                      ? std::count(targets, targets + batch.count, -1)
                      : std::count_if(slot.faults.begin(), slot.faults.end(),  // several targets
                                      [](const std::string& fault) { return !fault.empty(); });
}

/// Waits for the rows of a batch, and counts those that are damaged.
void Loader::hand_out(Slot& slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot.left == 0; });
  if (slot.failure) std::rethrow_exception(slot.failure);
  damage_.clear();
  std::ranges::copy_if(slot.faults, std::back_inserter(damage_),
                       [](const std::string& fault) { return !fault.empty(); });
  damaged_ += std::ssize(damage_);
  if (!damage_.empty()) last_damage_ = damage_.back();
}

/// With true, threads stop after the rows that they have begun.
void Loader::abandon(bool abandoned) {
  std::lock_guard lock(mutex_);
  abandoned_ = abandoned;
}

}  // namespace wisp
