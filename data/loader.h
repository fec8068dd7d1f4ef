// One worker's batches, epoch by epoch, prepared ahead on threads of its own. What they hold
// depends on the examples and the deal, never on the threads. A Loader belongs to one thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/work_queue.h"
#include "core/batch.h"
#include "data/examples.h"

namespace wisp {

struct LoaderOptions {
  int threads = 1;       // loader threads; 0: the caller's thread prepares each batch
  int64_t prefetch = 2;  // batches prepared ahead of the one handed out
};

class Loader {
 public:
  /// `examples` must outlive the loader. Throws Error as Examples::epoch().
  Loader(const Examples& examples, const Deal& deal, LoaderOptions options = {});
  /// Finishes the batches under way.
  ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Deal& deal() const { return deal_; }
  /// This worker's batches per epoch.
  int64_t batches() const { return batches_; }

  /// Begins an epoch, at batch `first`; one under way is given up.
  void start_epoch(int64_t epoch, int64_t first = 0);

  /// The next batch, or nothing at the end of the epoch. Its tensors belong to the loader and stay
  /// as they are until next() or start_epoch() is called again. Throws what a loader thread threw,
  /// each time until the next start_epoch().
  std::optional<Batch> next();

  /// The batch that next() is going to return, if it is there already and no error; it stays as it
  /// is until next() has returned the one behind it.
  std::optional<Batch> ahead();

  /// Samples handed out so far that were damaged, and what was wrong with the last of them.
  int64_t damaged() const { return damaged_; }
  const std::string& last_damage() const { return last_damage_; }
  /// What was wrong with the damaged samples of the batch that next() returned last.
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  struct Slot {
    Batch buffer;
    bool ready = false;
    std::exception_ptr failure;
    std::vector<std::string> damage;
  };

  Slot& slot_of(int64_t index) { return slots_[static_cast<size_t>(index) % slots_.size()]; }
  void post_until(int64_t end);
  void prepare(int64_t index) noexcept;
  void fill(int64_t index);

  const Examples& examples_;
  const Deal deal_;
  const LoaderOptions options_;
  std::vector<Piece> pieces_;  // of epoch_
  int64_t epoch_ = 0;          // the one under way; before the first, epoch 0, which was counted
  int64_t batches_ = 0;
  bool started_ = false;
  int64_t next_ = 0;    // batch to hand out
  int64_t posted_ = 0;  // batches given to the threads, as an index
  int64_t damaged_ = 0;
  std::string last_damage_;
  std::vector<std::string> damage_;
  std::vector<Slot> slots_;  // a ring: one with the caller, `prefetch` ahead
  std::mutex mutex_;         // guards ready and failure of the slots
  std::condition_variable changed_;
  std::vector<std::unique_ptr<WorkQueue>> threads_;  // last: they stop first
};

}  // namespace wisp
