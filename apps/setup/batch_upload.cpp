#include "apps/setup/batch_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/copy.h"

namespace wisp {

/// Pinning memory waits for the device and for all that share memory with it. Therefore both slots
/// get their memory with the first batch, before any exchange, and growth later at least doubles
/// it.
void BatchUpload::make_room(size_t place, int64_t bytes) {
  for (Slot& slot : slots_) {
    if (slot.tensors.size() <= place) slot.tensors.resize(place + 1);
    Tensor& room = slot.tensors[place];
    if (room.defined() && room.bytes() >= bytes) continue;
    slot.copied.synchronize();
    const int64_t more = room.defined() ? std::max(bytes, 2 * room.bytes()) : bytes;
    room = host_tensor({more}, DType::u8, copies_.device());
  }
}

Tensor BatchUpload::upload(const Tensor& tensor, Slot& slot, size_t place) {
  if (!tensor.defined()) return {};
  make_room(place, tensor.bytes());
  const Tensor& room = slot.tensors[place];
  std::memcpy(room.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
  const Tensor there(tensor.shape(), tensor.dtype(), context_.pool, copies_.id());
  copy(copies_, room.fitted(tensor.shape(), tensor.dtype()), there);
  return there;
}

/// A batch of a loader is identified by its memory, epoch and number.
bool BatchUpload::has_started(const Batch& batch) const {
  return started_ && started_->from.samples.raw() == batch.samples.raw() &&
         started_->from.epoch == batch.epoch && started_->from.index == batch.index;
}

void BatchUpload::start(const Batch& batch) {
  if (!copies_.device().is_cuda()) return;
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();
  started_ = {batch, batch, &slot};
  Batch& there = started_->there;
  size_t place = 0;
  for (Tensor& input : there.inputs) input = upload(input, slot, place++);
  there.targets = upload(there.targets, slot, place++);
  there.samples = upload(there.samples, slot, place++);
  slot.copied.record(copies_);
}

Batch BatchUpload::operator()(const Batch& batch) {
  if (!copies_.device().is_cuda()) {
    WISP_CHECK(
        !batch.maker,
        "the loader gives batches that a device must make, but this replica is on the CPU; its "
        "MemoryPool must be of TrainOptions::target()");
    return batch;
  }
  used_.record(context_.stream);
  used_.wait(copies_);
  given_ = {};
  if (!has_started(batch)) start(batch);
  started_->slot->copied.wait(context_.stream);
  given_ = std::move(started_->there);
  started_.reset();
  if (given_.maker) given_.maker->make(context_, given_);
  return given_;
}

}  // namespace wisp
