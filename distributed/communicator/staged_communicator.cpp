#include "distributed/communicator/staged_communicator.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/copy.h"

namespace wisp {
namespace {

constexpr size_t kOfHost = static_cast<size_t>(-1);  // a slice of host memory, without a place
constexpr int64_t kAlignment = 64;

std::vector<ConstBytes> as_sent(std::span<const Bytes> data) {
  std::vector<ConstBytes> sent;
  for (const Bytes& slice : data) sent.push_back({slice.data, slice.bytes});
  return sent;
}

}  // namespace

/// Begins the host's collective when the sent data is in the block; copies received data to the
/// device at the end.
class StagedCommunicator::UnderWay final : public Pending {
 public:
  UnderWay(StagedCommunicator& owner, Begin begin) : owner_(owner), begin_(std::move(begin)) {
    if (owner_.slices_.empty()) host_ = begin_();
    owner_.under_way_ = true;
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() override {
    if (done_) return;
    owner_.settle();
    owner_.under_way_ = false;
  }

  bool ready() override { return begun() && host_->ready(); }
  double ready_at_us() override { return begun() ? host_->ready_at_us() : 0.0; }
  Transfer wait() override {
    if (!begun()) {
      owner_.there_.synchronize();
      host_ = begin_();
    }
    const Transfer transfer = host_->wait();
    owner_.deliver();
    owner_.under_way_ = false;
    done_ = true;
    return transfer;
  }

 private:
  bool begun() {
    if (!host_ && owner_.there_.reached()) host_ = begin_();
    return host_ != nullptr;
  }

  StagedCommunicator& owner_;
  Begin begin_;
  PendingPtr host_;
  bool done_ = false;
};

StagedCommunicator::StagedCommunicator(Communicator& host, const Stream& stream,
                                       const MemoryPool& pool)
    : host_(host), stream_(stream), pool_(pool) {}

StagedCommunicator::~StagedCommunicator() { settle(); }

std::unique_ptr<Communicator> StagedCommunicator::split(int colour) {
  WISP_CHECK(!under_way_, "split: a collective is still under way, wait() for it first");
  std::unique_ptr<Communicator> host = host_.split(colour);
  auto group = std::make_unique<StagedCommunicator>(*host, stream_, pool_);
  group->owned_ = std::move(host);
  return group;
}

/// Waits until no copy from or to the block is under way.
void StagedCommunicator::settle() noexcept {
  try {
    stream_.synchronize();
  } catch (const std::exception& failure) {  // the submitter of the work gets the failure
  }
}

/// Registers a slice. A slice that is sent and received, or sent to its own rank, is registered
/// once.
size_t StagedCommunicator::place(const std::byte* data, int64_t bytes, bool sent) {
  if (bytes == 0 || !pool_.holds(data)) return kOfHost;
  auto* device = const_cast<std::byte*>(data);  // data that is only sent is only read
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

/// Makes room for all slices, and fetches the sent ones.
void StagedCommunicator::fit_and_send() {
  if (slices_.empty()) return;
  if (used_bytes_ > block_bytes_) {
    if (block_) stream_.synchronize();                       // the collective before
    block_.reset();                                          // free the old block first
    block_bytes_ = std::max(used_bytes_, block_bytes_ * 2);  // sizes differ from step to step
    block_ = pinned_block(block_bytes_, stream_.device());
  }
  for (const Slice& slice : slices_) {
    if (slice.sent) copy_bytes(stream_, slice.device, block_.get() + slice.offset, slice.bytes);
  }
  there_.record(stream_);
}

void StagedCommunicator::deliver() {
  for (const Slice& slice : slices_) {
    if (slice.received) copy_bytes(stream_, block_.get() + slice.offset, slice.device, slice.bytes);
  }
}

PendingPtr StagedCommunicator::begin_when_there(Begin begin) {
  return std::make_unique<UnderWay>(*this, std::move(begin));
}

PendingPtr StagedCommunicator::all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) {
  return begin_when_there([this, staged = stage(as_sent(data), data), dtype, op] {
    return host_.all_reduce(staged.in, dtype, op);
  });
}

PendingPtr StagedCommunicator::all_gather(std::span<const ConstBytes> out,
                                          std::span<const Bytes> in) {
  return begin_when_there(
      [this, staged = stage(out, in)] { return host_.all_gather(staged.out, staged.in); });
}

PendingPtr StagedCommunicator::all_to_all(std::span<const ConstBytes> out,
                                          std::span<const Bytes> in) {
  return begin_when_there(
      [this, staged = stage(out, in)] { return host_.all_to_all(staged.out, staged.in); });
}

PendingPtr StagedCommunicator::exchange(std::span<const Exchange> messages) {
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  std::vector<int> peers;
  for (const Exchange& message : messages) {
    out.push_back(message.out);
    in.push_back(message.in);
    peers.push_back(message.peer);
  }
  return begin_when_there([this, staged = stage(out, in), peers = std::move(peers)] {
    std::vector<Exchange> there;
    for (size_t i = 0; i < peers.size(); ++i)
      there.push_back({peers[i], staged.out[i], staged.in[i]});
    return host_.exchange(there);
  });
}

PendingPtr StagedCommunicator::barrier() {
  return begin_when_there([this, staged = stage({}, {})] { return host_.barrier(); });
}

/// The lists of sent and received slices in host memory.
StagedCommunicator::Staged StagedCommunicator::stage(std::span<const ConstBytes> out,
                                                     std::span<const Bytes> in) {
  WISP_CHECK(!under_way_, "a collective on a device's memory was called before the one before it ",
             "had ended: they share a block");
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
