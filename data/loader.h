// A loader of one worker's batches, epoch by epoch, that prepares them ahead on its own threads.
// The threads share the rows of each batch, and go on with the next epoch at the end of a training
// epoch. A batch depends on the examples and the deal, never on the threads. One thread calls.
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
  /// `examples` must outlive the loader. Throws Error like Examples::epoch().
  Loader(const Examples& examples, const Deal& deal, LoaderOptions options = {});
  /// Finishes the rows in preparation.
  ~Loader();

  const Deal& deal() const { return deal_; }
  /// Number of this worker's batches per epoch.
  int64_t batches() const { return batches_; }

  /// Begins an epoch at batch `first` and abandons the current epoch. The batches prepared ahead
  /// are kept if this is the epoch after one that has ended.
  void start_epoch(int64_t epoch, int64_t first = 0);

  /// The next batch, or nothing at the end of the epoch. Its tensors belong to the loader and stay
  /// unchanged until next() or start_epoch() is called again. Rethrows an exception of a loader
  /// thread, at each call until the next start_epoch().
  std::optional<Batch> next();

  /// The batch that next() will return, unchanged, if it is ready and without error.
  std::optional<Batch> ahead();

  /// Number of damaged samples handed out so far, and the fault of the last one.
  int64_t damaged() const { return damaged_; }
  const std::string& last_damage() const { return last_damage_; }
  /// The faults of the damaged samples in the batch that next() returned last.
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  struct Slot {
    Batch buffer;
    const Piece* piece = nullptr;
    int64_t taken = 0;                // rows that threads have begun
    int64_t left = 0;                 // rows that are not finished
    std::vector<std::string> faults;  // by row
    std::exception_ptr failure;       // of row `failed`, the first that threw
    int64_t failed = 0;
  };

  /// The position of the batch after the epoch's last.
  int64_t end() const { return begin_ + batches_; }
  Slot& slot_of(int64_t position) { return slots_[static_cast<size_t>(position) % slots_.size()]; }
  std::vector<Piece> cut(int64_t epoch) const;
  void post_until(int64_t wanted);
  void prepare(int64_t position);
  void fill_rows(Slot& slot) noexcept;
  static void count_ignored(Slot& slot);
  void hand_out(Slot& slot);
  void abandon(bool abandoned);

  const Examples& examples_;
  const Deal deal_;
  const LoaderOptions options_;
  std::vector<Piece> pieces_;     // of epoch_
  std::vector<Piece> following_;  // of the next epoch, once it is prepared ahead
  int64_t epoch_ = 0;             // current epoch; 0 before the first start_epoch()
  int64_t batches_ = 0;
  bool started_ = false;
  int64_t begin_ = 0;   // position of the epoch's batch 0; positions go on from epoch to epoch
  int64_t next_ = 0;    // position of the batch to hand out
  int64_t posted_ = 0;  // position after the last batch given to the threads
  int64_t damaged_ = 0;
  std::string last_damage_;
  std::vector<std::string> damage_;
  std::vector<Slot> slots_;  // ring by position: one batch with the caller, `prefetch` ahead
  bool abandoned_ = false;   // threads begin no more rows
  std::mutex mutex_;         // guards rows and failures of the slots, and abandoned_
  std::condition_variable changed_;
  std::vector<std::unique_ptr<WorkQueue>> threads_;  // declared last, so destroyed first
};

}  // namespace wisp
