// Cuts a data set into one worker's batches, epoch by epoch, and prepares them ahead on threads of
// its own. What the batches hold depends on (seed, epoch) and on the options up to `augment`, never
// on `threads` and `prefetch`. A Loader belongs to one thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/work_queue.h"
#include "data/augment.h"
#include "data/dataset.h"

namespace wisp {

struct LoaderOptions {
  int64_t batch = 128;  // samples of a worker's batch
  int workers = 1;
  int rank = 0;
  uint64_t seed = 0;
  DType compute = DType::f32;  // of Batch::input
  bool shuffle = true;         // a new order each epoch, the same on all ranks
  bool drop_last = true;       // skip what does not fill a batch on every worker
  bool augment = true;         // random crop of the image padded by 4, random flip
  int threads = 1;             // loader threads; 0: the caller's thread prepares each batch
  int64_t prefetch = 2;        // batches prepared ahead of the one handed out
};

class Loader {
 public:
  /// `set` must outlive the loader. Throws Error if there are more workers than samples, or too few
  /// samples for one batch on every worker when the last ones are dropped.
  Loader(const Dataset& set, LoaderOptions options);
  /// Finishes the batches under way.
  ~Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// This worker's batches per epoch. Equal on all ranks with drop_last; without it every sample is
  /// in one batch of one worker, the last batch may be smaller and some ranks may have one less.
  int64_t batches() const { return batches_; }

  /// Begins an epoch, at batch `first`; one under way is given up.
  void start_epoch(int64_t epoch, int64_t first = 0);

  /// The next batch, or nothing at the end of the epoch. Batch t of worker w holds samples
  /// [(t workers + w) batch, …) of the epoch's order. Its tensors belong to the loader and stay as
  /// they are until next() or start_epoch() is called again. Throws Error for a label out of range
  /// and whatever else a loader thread threw, each time until the next start_epoch().
  std::optional<Batch> next();

 private:
  struct Slot {
    Batch buffer;  // of full size
    bool ready = false;
    std::exception_ptr failure;
  };

  Slot& slot_of(int64_t index) { return slots_[static_cast<size_t>(index) % slots_.size()]; }
  int64_t first_place(int64_t index) const;
  int64_t size_of_batch(int64_t index) const;
  void post_until(int64_t end);
  void prepare(int64_t index) noexcept;
  void fill(int64_t index);

  const Dataset& set_;
  const LoaderOptions options_;
  const Normalizer normalizer_;
  int64_t batches_ = 0;
  std::vector<int64_t> order_;  // place in the epoch -> sample
  int64_t epoch_ = -1;
  int64_t next_ = 0;         // batch to hand out
  int64_t posted_ = 0;       // batches given to the threads, as an index
  std::vector<Slot> slots_;  // a ring: one with the caller, `prefetch` ahead
  std::mutex mutex_;         // guards ready and failure of the slots
  std::condition_variable changed_;
  std::vector<std::unique_ptr<WorkQueue>> threads_;  // last: they stop first
};

}  // namespace wisp
