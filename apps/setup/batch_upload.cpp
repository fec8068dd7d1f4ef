#include "apps/setup/batch_upload.h"

#include <cstring>

#include "core/copy.h"

namespace wisp {

Tensor BatchUpload::upload(const Tensor& tensor, Slot& slot, size_t place) const {
  if (!tensor.defined()) return {};
  if (slot.tensors.size() <= place) slot.tensors.resize(place + 1);
  Tensor& room = slot.tensors[place];
  if (!room.defined() || room.bytes() < tensor.bytes())
    room = host_tensor({tensor.bytes()}, DType::u8, context_.stream.device());
  std::memcpy(room.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
  const Tensor there = context_.empty(tensor.shape(), tensor.dtype());
  copy(context_.stream, room.fitted(tensor.shape(), tensor.dtype()), there);
  return there;
}

Batch BatchUpload::operator()(Batch batch) {
  if (!context_.stream.device().is_cuda()) return batch;
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  slot.copied.synchronize();
  size_t place = 0;
  for (Tensor& input : batch.inputs) input = upload(input, slot, place++);
  batch.targets = upload(batch.targets, slot, place++);
  batch.samples = upload(batch.samples, slot, place++);
  slot.copied.record(context_.stream);
  if (batch.maker) batch.maker->make(context_, batch);
  return batch;
}

}  // namespace wisp
