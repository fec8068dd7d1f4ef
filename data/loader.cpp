#include "data/loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/random.h"

namespace wisp {
namespace {

constexpr int64_t kPad = 4;                            // Source: He et al. 2016, section 4.2
constexpr uint64_t kOrderId = 0xffffffff'6f726465ull;  // apart from the samples' keys

int64_t batches_of(int64_t count, const LoaderOptions& o) {
  WISP_CHECK(o.batch > 0 && o.workers > 0, "loader: batch ", o.batch, " and ", o.workers,
             " workers, expected at least 1 each");
  WISP_CHECK(o.rank >= 0 && o.rank < o.workers, "loader: rank ", o.rank, " of ", o.workers,
             " workers");
  WISP_CHECK(o.threads >= 0 && o.prefetch >= 0, "loader: ", o.threads, " threads and prefetch ",
             o.prefetch, ", expected 0 or more");
  WISP_CHECK(count >= o.workers, "loader: ", o.workers, " workers for ", count,
             " samples, expected at most one worker per sample");
  const int64_t stride = o.workers * o.batch;
  if (o.drop_last) {
    WISP_CHECK(count >= stride, "loader: ", o.workers, " workers with batches of ", o.batch,
               " need ", stride, " samples for one step, the data set has ", count);
    return count / stride;
  }
  const int64_t rest = std::max<int64_t>(0, count - o.rank * o.batch);
  return (rest + stride - 1) / stride;
}

// Fisher-Yates.
void shuffle(std::vector<int64_t>& order, uint64_t seed, int64_t epoch) {
  const Philox philox(seed, static_cast<uint64_t>(epoch), kOrderId);
  for (size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[philox.below(i, static_cast<uint32_t>(i + 1))]);
}

}  // namespace

Loader::Loader(const Dataset& set, LoaderOptions options)
    : set_(set),
      options_(options),
      normalizer_(set, options.compute),
      batches_(batches_of(set.count(), options)),
      order_(static_cast<size_t>(set.count())) {
  slots_.resize(options_.threads == 0 ? 1 : static_cast<size_t>(options_.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.buffer.input = Tensor(set.images.shape().with_rows(options_.batch), options_.compute);
    slot.buffer.labels = Tensor({options_.batch}, DType::i32);
    slot.buffer.samples = Tensor({options_.batch}, DType::i64);
  }
  for (int i = 0; i < options_.threads; ++i) threads_.push_back(std::make_unique<WorkQueue>());
}

int64_t Loader::first_place(int64_t index) const {
  return (index * options_.workers + options_.rank) * options_.batch;
}

int64_t Loader::size_of_batch(int64_t index) const {
  return std::min(options_.batch, set_.count() - first_place(index));
}

void Loader::start_epoch(int64_t epoch, int64_t first) {
  WISP_CHECK(epoch >= 0, "loader: epoch ", epoch, ", expected 0 or more");
  WISP_CHECK(first >= 0 && first <= batches_, "loader: first batch ", first, " of an epoch of ",
             batches_);
  for (const auto& thread : threads_) thread->drain();
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.shuffle) shuffle(order_, options_.seed, epoch);
  epoch_ = epoch;
  next_ = posted_ = first;
  if (!threads_.empty()) post_until(first + options_.prefetch);
}

std::optional<Batch> Loader::next() {
  WISP_CHECK(epoch_ >= 0, "loader: next() before start_epoch()");
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
  const int64_t size = size_of_batch(next_);
  return Batch{slot.buffer.input.rows(0, size), slot.buffer.labels.rows(0, size),
               slot.buffer.samples.rows(0, size), next_++};
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
  const Batch& buffer = slot_of(index).buffer;
  const int64_t place = first_place(index);
  const int64_t image_bytes = buffer.input.bytes() / options_.batch;
  for (int64_t i = 0; i < size_of_batch(index); ++i) {
    const int64_t sample = order_[static_cast<size_t>(place + i)];
    const int32_t label = set_.labels.data<int32_t>()[sample];
    WISP_CHECK(label >= 0 && label < set_.classes, "loader: ", set_.name, ": label ", label,
               " of sample ", sample, ", expected 0 to ", set_.classes - 1);
    const Window window =
        options_.augment ? random_window(options_.seed, epoch_, sample, kPad) : Window{};
    normalizer_.write(sample, window, buffer.input.raw() + i * image_bytes);
    buffer.labels.data<int32_t>()[i] = label;
    buffer.samples.data<int64_t>()[i] = sample;
  }
}

}  // namespace wisp
