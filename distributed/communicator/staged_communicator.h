// Collectives on a device's memory, by a communicator that knows the host's alone: what a
// collective sends is copied to pinned memory first, and what came goes to the device at the end.
// Slices of the host's travel as they are. Used by its rank's comm thread.
#pragma once

#include <vector>

#include "core/storage.h"
#include "core/stream.h"
#include "distributed/communicator/communicator.h"

namespace wisp {

class StagedCommunicator final : public Communicator {
 public:
  /// `pool` is where the device's memory comes from; copies are in the order of `stream`, which has
  /// come so far when a collective starts, and when its wait() returns. All outlive this object.
  StagedCommunicator(Communicator& host, const Stream& stream, const MemoryPool& pool);

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override;
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override;
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override;
  PendingPtr broadcast(std::span<const Bytes> data, int root) override;
  PendingPtr exchange(std::span<const Exchange> messages) override;
  PendingPtr barrier() override { return host_.barrier(); }
  void abort(const std::string& cause) override { host_.abort(cause); }
  void on_progress(std::function<void()> notify) override { host_.on_progress(std::move(notify)); }

 private:
  class UnderWay;
  /// A slice of the device's and its place in the pinned block.
  struct Slice {
    std::byte* device = nullptr;
    int64_t bytes = 0, offset = 0;
    bool sent = false, received = false;
  };

  /// The lists of a collective as the host has them.
  struct Staged {
    std::vector<ConstBytes> out;
    std::vector<Bytes> in;
  };

  size_t place(const std::byte* data, int64_t bytes, bool sent);
  std::byte* on_host(size_t place, const std::byte* data) const;
  Staged stage(std::span<const ConstBytes> out, std::span<const Bytes> in);
  void fit_and_send();
  void deliver();
  PendingPtr under_way(PendingPtr pending);

  Communicator& host_;
  const Stream stream_;
  const MemoryPool& pool_;
  std::shared_ptr<std::byte> block_;  // pinned
  int64_t block_bytes_ = 0, used_bytes_ = 0;
  std::vector<Slice> slices_;  // of the collective under way
};

}  // namespace wisp
