// Collectives on device memory by a communicator that handles host memory only. Sent data is copied
// to pinned memory, then the host's collective begins; at the end, received data is copied to the
// device. Slices in host memory travel without a copy. One collective at a time. Used by its rank's
// comm thread.
#pragma once

#include <vector>

#include "core/device/storage.h"
#include "core/device/stream.h"
#include "distributed/communicator/communicator.h"

namespace wisp {

class StagedCommunicator final : public Communicator {
 public:
  /// `pool` owns the device memory; `stream` is the rank's stream. All outlive this object.
  StagedCommunicator(Communicator& host, const Stream& stream, const MemoryPool& pool);
  ~StagedCommunicator() override;

  const Roster& roster() const override { return host_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override;
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override;
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override;
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override;
  PendingPtr exchange(std::span<const Exchange> messages) override;
  PendingPtr barrier() override;
  int64_t bytes_sent() const override { return host_.bytes_sent(); }
  void abort(const std::string& cause) override { host_.abort(cause); }
  std::string hear_failure() override { return host_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { host_.on_progress(std::move(notify)); }

 private:
  class UnderWay;
  using Begin = std::function<PendingPtr()>;
  /// A slice of device memory and its place in the pinned block.
  struct Slice {
    std::byte* device = nullptr;
    int64_t bytes = 0, offset = 0;
    bool sent = false, received = false;
  };

  /// The lists of a collective in host memory.
  struct Staged {
    std::vector<ConstBytes> out;
    std::vector<Bytes> in;
  };

  size_t place(const std::byte* data, int64_t bytes, bool sent);
  std::byte* on_host(size_t place, const std::byte* data) const;
  Staged stage(std::span<const ConstBytes> out, std::span<const Bytes> in);
  void fit_and_send();
  void deliver();
  void settle() noexcept;
  PendingPtr begin_when_there(Begin begin);

  std::unique_ptr<Communicator> owned_;  // the host's communicator of a group
  Communicator& host_;
  const Stream stream_;
  const MemoryPool& pool_;
  std::shared_ptr<std::byte> block_;  // pinned memory
  int64_t block_bytes_ = 0, used_bytes_ = 0;
  std::vector<Slice> slices_;  // slices of the collective under way
  bool under_way_ = false;
  Event there_;  // recorded when the sent data is in the block
};

}  // namespace wisp
