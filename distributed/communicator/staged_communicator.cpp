#include "distributed/communicator/staged_communicator.h"

#include <algorithm>
#include <utility>

#include "core/copy.h"

namespace wisp {
namespace {

constexpr size_t kOfHost = static_cast<size_t>(-1);  // a slice that needs no place
constexpr int64_t kAlignment = 64;

std::vector<ConstBytes> as_sent(std::span<const Bytes> data) {
  std::vector<ConstBytes> sent;
  for (const Bytes& slice : data) sent.push_back({slice.data, slice.bytes});
  return sent;
}

}  // namespace

/// The host's collective; at its end what came goes to the device.
class StagedCommunicator::UnderWay final : public Pending {
 public:
  UnderWay(StagedCommunicator& owner, PendingPtr host) : owner_(owner), host_(std::move(host)) {}

  bool ready() override { return host_->ready(); }
  double ready_at_us() override { return host_->ready_at_us(); }
  Transfer wait() override {
    const Transfer transfer = host_->wait();
    owner_.deliver();
    return transfer;
  }

 private:
  StagedCommunicator& owner_;
  PendingPtr host_;
};

StagedCommunicator::StagedCommunicator(Communicator& host, const Stream& stream,
                                       const MemoryPool& pool)
    : host_(host), stream_(stream), pool_(pool) {}

/// Notes a slice; one that is sent and received, from a rank to itself too, is one.
size_t StagedCommunicator::place(const std::byte* data, int64_t bytes, bool sent) {
  if (bytes == 0 || !pool_.holds(data)) return kOfHost;
  auto* device = const_cast<std::byte*>(data);  // what is only sent is only read
  auto same = std::find_if(slices_.begin(), slices_.end(), [&](const Slice& slice) {
    return slice.device == device && slice.bytes == bytes;
  });
  if (same == slices_.end()) {
    same = slices_.insert(slices_.end(), {device, bytes, used_bytes_});
    used_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  (sent ? same->sent : same->received) = true;
  return static_cast<size_t>(same - slices_.begin());
}

std::byte* StagedCommunicator::on_host(size_t place, const std::byte* data) const {
  return place == kOfHost ? const_cast<std::byte*>(data) : block_.get() + slices_[place].offset;
}

/// Makes room for all slices and fetches those that are sent.
void StagedCommunicator::fit_and_send() {
  if (slices_.empty()) return;
  if (used_bytes_ > block_bytes_) {
    block_.reset();  // first give back, then take
    block_ = pinned_block(used_bytes_, stream_.device());
    block_bytes_ = used_bytes_;
  }
  for (const Slice& slice : slices_) {
    if (slice.sent) copy_bytes(stream_, slice.device, block_.get() + slice.offset, slice.bytes);
  }
  stream_.synchronize();
}

void StagedCommunicator::deliver() {
  if (slices_.empty()) return;
  for (const Slice& slice : slices_) {
    if (slice.received) copy_bytes(stream_, block_.get() + slice.offset, slice.device, slice.bytes);
  }
  stream_.synchronize();
}

PendingPtr StagedCommunicator::under_way(PendingPtr pending) {
  return std::make_unique<UnderWay>(*this, std::move(pending));
}

PendingPtr StagedCommunicator::all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) {
  const std::vector<ConstBytes> sent = as_sent(data);
  return under_way(host_.all_reduce(stage(sent, data).in, dtype, op));
}

PendingPtr StagedCommunicator::all_gather(std::span<const ConstBytes> out,
                                          std::span<const Bytes> in) {
  const Staged staged = stage(out, in);
  return under_way(host_.all_gather(staged.out, staged.in));
}

PendingPtr StagedCommunicator::all_to_all(std::span<const ConstBytes> out,
                                          std::span<const Bytes> in) {
  const Staged staged = stage(out, in);
  return under_way(host_.all_to_all(staged.out, staged.in));
}

PendingPtr StagedCommunicator::broadcast(std::span<const Bytes> data, int root) {
  const std::vector<ConstBytes> sent = rank() == root ? as_sent(data) : std::vector<ConstBytes>();
  return under_way(host_.broadcast(stage(sent, data).in, root));
}

PendingPtr StagedCommunicator::exchange(std::span<const Exchange> messages) {
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  for (const Exchange& message : messages) {
    out.push_back(message.out);
    in.push_back(message.in);
  }
  const Staged staged = stage(out, in);
  std::vector<Exchange> there;
  for (size_t i = 0; i < messages.size(); ++i)
    there.push_back({messages[i].peer, staged.out[i], staged.in[i]});
  return under_way(host_.exchange(there));
}

/// What is sent and received, where the host has it.
StagedCommunicator::Staged StagedCommunicator::stage(std::span<const ConstBytes> out,
                                                     std::span<const Bytes> in) {
  slices_.clear();
  used_bytes_ = 0;
  std::vector<size_t> sent, received;
  for (const ConstBytes& slice : out) sent.push_back(place(slice.data, slice.bytes, true));
  for (const Bytes& slice : in) received.push_back(place(slice.data, slice.bytes, false));
  fit_and_send();
  Staged result;
  for (size_t i = 0; i < out.size(); ++i)
    result.out.push_back({on_host(sent[i], out[i].data), out[i].bytes});
  for (size_t i = 0; i < in.size(); ++i)
    result.in.push_back({on_host(received[i], in[i].data), in[i].bytes});
  return result;
}

}  // namespace wisp
