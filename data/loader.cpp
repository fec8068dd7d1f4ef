#include "data/loader.h"

#include <algorithm>
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

void Loader::start_epoch(int64_t epoch, int64_t first) {
  WISP_CHECK(epoch >= 0, "loader: epoch ", epoch, ", expected 0 or more");
  WISP_CHECK(first >= 0 && first <= batches_, "loader: first batch ", first, " of an epoch of ",
             batches_);
  for (const auto& thread : threads_) thread->drain();
  if (epoch != epoch_) pieces_ = examples_.epoch(epoch, deal_);
  epoch_ = epoch;
  WISP_CHECK(std::ssize(pieces_) == batches_, "loader: epoch ", epoch, " has ", pieces_.size(),
             " batches, the first has ", batches_);
  started_ = true;
  next_ = posted_ = first;
  if (!threads_.empty()) post_until(first + options_.prefetch);
}

std::optional<Batch> Loader::next() {
  WISP_CHECK(started_, "loader: next() before start_epoch()");
  if (next_ == batches_) return std::nullopt;
  Slot& slot = slot_of(next_);
  if (threads_.empty()) {
    fill(next_);
  } else {
    post_until(next_ + 1 + options_.prefetch);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return slot.ready; });
    if (slot.failure) std::rethrow_exception(slot.failure);
  }
  damage_ = slot.damage;
  damaged_ += std::ssize(damage_);
  if (!damage_.empty()) last_damage_ = damage_.back();
  ++next_;
  return slot.buffer;
}

std::optional<Batch> Loader::ahead() {
  if (next_ >= posted_) return std::nullopt;
  const Slot& slot = slot_of(next_);
  std::lock_guard lock(mutex_);
  if (!slot.ready || slot.failure) return std::nullopt;
  return slot.buffer;
}

void Loader::post_until(int64_t end) {
  for (; posted_ < std::min(end, batches_); ++posted_) {
    const int64_t index = posted_;
    {
      std::lock_guard lock(mutex_);
      slot_of(index).ready = false;
    }
    threads_[static_cast<size_t>(index) % threads_.size()]->post([this, index] { prepare(index); });
  }
}

void Loader::prepare(int64_t index) noexcept {
  std::exception_ptr failure;
  try {
    fill(index);
  } catch (...) {
    failure = std::current_exception();
  }
  {
    std::lock_guard lock(mutex_);
    slot_of(index).failure = std::move(failure);
    slot_of(index).ready = true;
  }
  changed_.notify_one();
}

void Loader::fill(int64_t index) {
  const Piece& piece = pieces_[static_cast<size_t>(index)];
  Slot& slot = slot_of(index);
  Batch& batch = slot.buffer;
  examples_.shape(piece, batch);
  batch.count = piece.count;
  batch.of_worker = piece.of_worker;
  batch.of_step = piece.of_step;
  batch.work = piece.work;
  batch.index = index;
  batch.begins = piece.begins;
  batch.seed = piece.seed;
  batch.epoch = piece.epoch;
  slot.damage.clear();
  for (int64_t row = 0; row < std::ssize(piece.rows); ++row) {
    std::string damage = examples_.fill(piece, row, batch);
    if (!damage.empty()) slot.damage.push_back(std::move(damage));
  }
  batch.ignored = 0;
  if (batch.maker) return;
  const auto* targets = batch.targets.data<int32_t>();
  batch.ignored = batch.targets.numel() == batch.count
                      ? std::count(targets, targets + batch.count, -1)
                      : std::ssize(slot.damage);  // rows with several targets
}

}  // namespace wisp
