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

}  // namespace

/// Begins the host's collective when the sent data is in the block; copies received data to the
/// device at the end.
class StagedCommunicator::UnderWay final : public Pending {
 public:
  UnderWay(StagedCommunicator& owner, Call call) : owner_(owner), call_(std::move(call)) {
    if (owner_.slices_.empty()) host_ = pass_on(call_, owner_.host_);
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
      host_ = pass_on(call_, owner_.host_);
    }
    const Transfer transfer = host_->wait();
    owner_.deliver();
    owner_.under_way_ = false;
    done_ = true;
    return transfer;
  }

 private:
  bool begun() {
    if (!host_ && owner_.there_.reached()) host_ = pass_on(call_, owner_.host_);
    return host_ != nullptr;
  }

  StagedCommunicator& owner_;
  Call call_;  // in host memory
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

/// Registers a slice; once if it is sent and received, or sent to its own rank.
size_t StagedCommunicator::place(const ConstBytes& data, bool sent, bool received) {
  if (data.bytes == 0 || !pool_.holds(data.data)) return kOfHost;
  auto* device = const_cast<std::byte*>(data.data);  // data that is only sent is only read
  auto same = std::find_if(slices_.begin(), slices_.end(), [&](const Slice& slice) {
    return slice.device == device && slice.bytes == data.bytes;
  });
  if (same == slices_.end()) {
    same = slices_.insert(slices_.end(), {device, data.bytes, used_bytes_});
    used_bytes_ += (data.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  same->sent |= sent;
  same->received |= received;
  return static_cast<size_t>(same - slices_.begin());
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

PendingPtr StagedCommunicator::begin(Call call) {
  WISP_CHECK(!under_way_, "a collective on a device's memory was called before the one before it ",
             "had ended: they share a block");
  slices_.clear();
  used_bytes_ = 0;
  std::vector<size_t> sent, received;
  for (const ConstBytes& slice : call.out) sent.push_back(place(slice, true, false));
  for (const Bytes& slice : call.in) received.push_back(place(slice, call.label.reduces(), true));
  fit_and_send();
  const auto move_to_block = [&](auto& slices, const std::vector<size_t>& places) {
    for (size_t i = 0; i < slices.size(); ++i)
      if (places[i] != kOfHost) slices[i].data = block_.get() + slices_[places[i]].offset;
  };
  move_to_block(call.out, sent);
  move_to_block(call.in, received);
  return std::make_unique<UnderWay>(*this, std::move(call));
}

}  // namespace wisp
