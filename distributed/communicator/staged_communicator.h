// Collectives on device memory by a communicator that handles host memory only. Sent data is copied
// to pinned memory, then the host's collective begins; at the end, received data is copied to the
// device. Slices in host memory are not copied. One collective at a time. For its rank's comm
// thread.
#pragma once

#include <vector>

#include "core/device/storage.h"
#include "core/device/stream.h"
#include "distributed/communicator/host_communicator.h"

namespace wisp {

class StagedCommunicator final : public HostCommunicator {
 public:
  /// `pool` owns the device memory; `stream` is the rank's stream. All outlive this object.
  StagedCommunicator(Communicator& host, const Stream& stream, const MemoryPool& pool);
  ~StagedCommunicator() override;

  const Roster& roster() const override { return host_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override;
  int64_t bytes_sent() const override { return host_.bytes_sent(); }
  void abort(const std::string& cause) override { host_.abort(cause); }
  std::string hear_failure() override { return host_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { host_.on_progress(std::move(notify)); }

 private:
  class UnderWay;
  /// A slice of device memory and its place in the pinned block.
  struct Slice {
    std::byte* device = nullptr;
    int64_t bytes = 0, offset = 0;
    bool sent = false, received = false;
  };

  PendingPtr begin(Call call) override;
  size_t place(const ConstBytes& data, bool sent, bool received);
  void fit_and_send();
  void deliver();
  void settle() noexcept;

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
