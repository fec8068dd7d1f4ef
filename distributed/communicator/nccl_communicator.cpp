#include "distributed/communicator/nccl_communicator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/device/stream.h"
#include "distributed/communicator/deadline.h"
#include "distributed/communicator/device_moves.h"
#include "distributed/communicator/host_communicator.h"
#include "distributed/communicator/nccl_connection.h"
#include "distributed/communicator/notice.h"

namespace wisp {
namespace {

constexpr double kShortestPauseUs = 10.0, kLongestPauseUs = 200.0, kPauseGrowth = 1.3;

class UnderWay;

/// The state that a rank's communicators share. A failure ends all of them, because their work is
/// on one stream. For the same reason each rank submits in the order in which it began.
struct NcclRank {
  const Stream stream;
  const MemoryPool& pool;
  const double timeout_s;
  std::string failure;                       // the Error of every wait()
  std::vector<NcclConnection*> connections;  // of the rank's groups
  std::vector<UnderWay*> begun;              // not yet on the stream, in order
};

class NcclCommunicator final : public HostCommunicator {
 public:
  NcclCommunicator(Communicator& host, NcclRank& own);
  /// The rank's first communicator, which outlives the others and owns what they share.
  NcclCommunicator(Communicator& host, std::unique_ptr<NcclRank> own)
      : NcclCommunicator(host, *own) {
    owned_rank_ = std::move(own);
  }
  ~NcclCommunicator() override;

  const Roster& roster() const override { return host_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override;
  void abort(const std::string& cause) override { host_.abort(cause); }
  std::string hear_failure() override { return host_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { host_.on_progress(std::move(notify)); }

 private:
  friend UnderWay;

  PendingPtr begin(Call call) override;
  PendingPtr tell(const Call& call, Where place);
  void fail(const std::string& cause);
  void end(const std::string& failure) noexcept;

  std::unique_ptr<NcclRank> owned_rank_;
  std::unique_ptr<Communicator> owned_;  // the host's communicator of a group
  Communicator& host_;
  NcclRank& own_;
  NcclConnection connection_{host_, own_.stream, own_.timeout_s};
  bool under_way_ = false;
  Event moved_;                       // recorded when the collective's data has moved
  std::vector<Notice> told_, heard_;  // indexed by rank
};

/// First the agreement; then NCCL's work, or the host's if no rank has device memory.
class UnderWay final : public Pending {
 public:
  /// `host` is the agreement under way; null after a failure.
  UnderWay(NcclCommunicator& owner, Call call, PendingPtr host)
      : owner_(owner), call_(std::move(call)), host_(std::move(host)) {
    if (!host_) phase_ = Phase::over;
    if (host_) owner_.own_.begun.push_back(this);
    owner_.under_way_ = true;
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() override {
    host_.reset();
    become(Phase::over);
    owner_.under_way_ = false;
    if (!waited_) owner_.end(concat(call_.label.str(), ": was given up before it had ended"));
  }

  bool ready() override { return look(false); }
  double ready_at_us() override {
    if (look(false)) return 0.0;
    return host_ ? host_->ready_at_us() : looked_us_ + pause_us_;
  }
  Transfer wait() override {
    WISP_CHECK(!waited_, "wait: this collective has been waited for already");
    while (!look(true)) sleep_us(pause_us_);
    waited_ = true;
    owner_.under_way_ = false;
    if (!owner_.own_.failure.empty()) throw Error(owner_.own_.failure);
    return transfer_;
  }

 private:
  enum class Phase {
    agreeing,   // `host_` carries notices
    on_host,    // `host_` carries the data
    refused,    // another rank is about to report that its call does not fit
    queued,     // work that was begun before is not on the stream yet
    launching,  // NCCL is putting its work on the stream
    moving,     // the stream has not finished this work
    over
  };

  /// Progresses; waits for the host's part only if `may_wait`. Returns whether all is over.
  bool look(bool may_wait) {
    try {
      while (phase_ != Phase::over && advance(may_wait)) pause_us_ = kShortestPauseUs;
    } catch (const std::exception& failure) {
      fail(concat(call_.label.str(), ": ", failure.what()));
    }
    looked_us_ = now_us();
    pause_us_ = std::min(kLongestPauseUs, pause_us_ * kPauseGrowth);
    return phase_ == Phase::over;
  }

  /// Does one thing that is possible now; returns false if there is none.
  bool advance(bool may_wait) {
    if (!owner_.own_.failure.empty()) {  // perhaps of another group
      host_.reset();
      return become(Phase::over);
    }
    if (host_) {
      if (!may_wait && !host_->ready()) return false;
      transfer_ = host_->wait();
      host_.reset();
      if (phase_ == Phase::on_host) return become(Phase::over);
      return begin_work();
    }
    if (phase_ == Phase::queued) {
      deadline_.restart();
      if (UnderWay* first = owner_.own_.begun.front(); first != this) return first->look(false);
      owner_.connection_.submit(call_);
      return become(Phase::launching);
    }
    if (phase_ == Phase::launching && owner_.connection_.at_rest()) {
      owner_.moved_.record(owner_.own_.stream);
      return become(Phase::moving);
    }
    if (phase_ == Phase::moving && owner_.connection_.at_rest() && owner_.moved_.reached()) {
      transfer_.end_us = now_us();
      return become(Phase::over);
    }
    look_after_others();
    return false;
  }

  bool become(Phase phase) {
    phase_ = phase;
    if (phase != Phase::queued && phase != Phase::launching) std::erase(owner_.own_.begun, this);
    return true;
  }

  /// Begins the work after all ranks have come.
  bool begin_work() {
    deadline_.restart();
    mismatch_ = find_mismatch(call_, owner_.rank(), owner_.heard_);
    if (!mismatch_.why.empty()) {
      if (mismatch_.rank != owner_.rank()) return become(Phase::refused);
      fail(mismatch_.why);
      return true;
    }
    const Traffic traffic = traffic_of(call_, owner_.rank(), owner_.size());
    transfer_.sent = traffic.sent;
    transfer_.received = traffic.received;
    const bool on_device =
        std::any_of(owner_.heard_.begin(), owner_.heard_.end(),
                    [](const Notice& notice) { return notice.place == Where::device; });
    if (on_device) return become(Phase::queued);
    if (call_.label.kind == Call::Kind::barrier) return become(Phase::over);
    host_ = pass_on(call_, owner_.host_);
    return become(Phase::on_host);
  }

  void look_after_others() {
    if (const std::string failure = owner_.host_.hear_failure(); !failure.empty())
      throw Error(failure);
    if (!deadline_.passed()) return;
    if (phase_ == Phase::refused)
      throw Error(concat(call_.label.name(mismatch_.rank), " ", mismatch_.why));
    throw Error(
        concat("waited ", owner_.own_.timeout_s, " s for the devices, after all ranks had come"));
  }

  void fail(const std::string& cause) {
    host_.reset();
    become(Phase::over);
    owner_.fail(cause);
  }

  NcclCommunicator& owner_;
  Call call_;
  PendingPtr host_;
  Phase phase_ = Phase::agreeing;
  Mismatch mismatch_;
  Transfer transfer_;
  double looked_us_ = 0.0, pause_us_ = kShortestPauseUs;
  Deadline deadline_{owner_.own_.timeout_s};  // since all had come
  bool waited_ = false;
};

NcclCommunicator::NcclCommunicator(Communicator& host, NcclRank& own) : host_(host), own_(own) {
  told_.resize(static_cast<size_t>(size()));
  heard_.resize(told_.size());
  own_.connections.push_back(&connection_);
  try {
    connection_.join();
  } catch (const std::exception& failure) {
    fail(failure.what());
    throw Error(own_.failure);
  }
}

std::unique_ptr<Communicator> NcclCommunicator::split(int colour) {
  WISP_CHECK(!under_way_, "split: a collective is still under way, wait() for it first");
  std::unique_ptr<Communicator> host = host_.split(colour);
  auto group = std::make_unique<NcclCommunicator>(*host, own_);
  group->owned_ = std::move(host);
  return group;
}

NcclCommunicator::~NcclCommunicator() {
  try {
    connection_.close();
  } catch (const std::exception& failure) {  // the rank's next wait() throws it
    end(failure.what());
  }
  std::erase(own_.connections, &connection_);
}

PendingPtr NcclCommunicator::begin(Call call) {
  WISP_CHECK(!under_way_, call.label.str(),
             ": the collective before it is still under way, wait() for it first");
  call.on_device = lies_in(own_.pool, call);
  const Call::Kind kind = call.label.kind;
  const Where place = call.empty() ? Where::nowhere : call.on_device ? Where::device : Where::host;
  // A rank with nothing to send and receive cannot know the place of the others' memory.
  const bool may_differ = kind == Call::Kind::all_to_all || kind == Call::Kind::exchange;
  if (place == Where::host && !may_differ) return pass_on(call, host_);
  PendingPtr agreement = own_.failure.empty() ? tell(call, place) : nullptr;
  return std::make_unique<UnderWay>(*this, std::move(call), std::move(agreement));
}

/// Tells each rank this one's call, and hears theirs.
PendingPtr NcclCommunicator::tell(const Call& call, Where place) {
  std::vector<ConstBytes> out;
  std::vector<Bytes> in;
  for (int peer = 0; peer < size(); ++peer) {
    Notice& notice = told_[static_cast<size_t>(peer)];
    notice = notice_of(call, place, peer);
    out.push_back({reinterpret_cast<const std::byte*>(&notice), sizeof notice});
    in.push_back({reinterpret_cast<std::byte*>(&heard_[static_cast<size_t>(peer)]), sizeof notice});
  }
  return host_.all_to_all(out, in);
}

/// Ends all ranks' collectives. The first rank that failed gave the cause.
void NcclCommunicator::fail(const std::string& cause) {
  host_.abort(cause);
  end(host_.hear_failure());
}

/// Ends this rank's part in NCCL, in all its groups. Afterwards no work on the stream waits for
/// another rank or uses the memory of the collectives under way.
void NcclCommunicator::end(const std::string& failure) noexcept {
  if (own_.failure.empty()) own_.failure = failure;
  for (NcclConnection* connection : std::exchange(own_.connections, {})) connection->abort();
  try {
    own_.stream.synchronize();
  } catch (const std::exception& lost) {  // the submitter of the work gets the failure
  }
}

}  // namespace

std::unique_ptr<Communicator> join_nccl(Communicator& host, const Stream& stream,
                                        const MemoryPool& pool, double timeout_s) {
  return std::make_unique<NcclCommunicator>(
      host, std::make_unique<NcclRank>(NcclRank{stream, pool, timeout_s, {}, {}, {}}));
}

}  // namespace wisp
