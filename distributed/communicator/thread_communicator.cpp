#include "distributed/communicator/thread_communicator.h"

#include <optional>
#include <utility>

#include "core/device/storage.h"
#include "core/device/stream.h"
#include "distributed/communicator/device_moves.h"
#include "distributed/communicator/host_communicator.h"
#include "distributed/communicator/thread_meetings.h"

namespace wisp {

class ThreadGroup::Member final : public HostCommunicator {
 public:
  Member(ThreadMeetings& meetings, Roster roster)
      : meetings_(meetings), roster_(std::move(roster)), circle_(meetings.circle_of(roster_)) {}

  const Roster& roster() const override { return roster_; }
  std::unique_ptr<Communicator> split(int colour) override {
    auto group = std::make_unique<Member>(
        meetings_, split_roster(colour, meetings_.generation(roster_.in_run())));
    if (pool_) group->move_devices(*stream_, *pool_);
    return group;
  }
  void abort(const std::string& cause) override { meetings_.abort(roster_.in_run(), cause); }
  std::string hear_failure() override { return meetings_.failure(); }
  void on_progress(std::function<void()> notify) override {
    meetings_.listen(roster_.in_run(), std::move(notify));
  }
  bool move_devices(const Stream& stream, const MemoryPool& pool) override {
    if (size() > kMostDeviceRanks) return false;
    stream_.emplace(stream);
    pool_ = &pool;
    return true;
  }

 private:
  class UnderWay;

  PendingPtr begin(Call call) override;
  const Stream* stream() const { return stream_ ? &*stream_ : nullptr; }

  ThreadMeetings& meetings_;
  const Roster roster_;
  const std::shared_ptr<Circle> circle_;
  std::optional<Stream> stream_;  // a device's stream
  const MemoryPool* pool_ = nullptr;
};

/// A call on device memory joins the meeting when the stream has reached it, so that the link's
/// clock starts when the data is there.
class ThreadGroup::Member::UnderWay final : public Pending {
 public:
  UnderWay(Member& member, Call call) : member_(member), call_(std::move(call)) {
    if (call_.on_device) {
      there_.record(*member_.stream());
    } else {
      join();
    }
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() override {
    if (meeting_ && !finished_) member_.meetings_.desert(*meeting_, member_.rank());
  }
  bool ready() override {
    const double asked_us = now_us();  // before the look, whose next time may soon be past
    return ready_at_us() <= asked_us && joined_;
  }
  double ready_at_us() override {
    if (!joined_ && there_.reached()) join();
    return joined_ ? member_.meetings_.ready_at_us(meeting_.get(), member_.rank(), deadline_) : 0.0;
  }
  Transfer wait() override {
    WISP_CHECK(!finished_, "wait: this collective has been waited for already");
    if (!joined_) {
      there_.synchronize();
      join();
    }
    finished_ = true;
    return member_.meetings_.finish(*member_.circle_, meeting_.get(), member_.roster_,
                                    member_.stream(), deadline_);
  }

 private:
  void join() {
    meeting_ = member_.meetings_.join(*member_.circle_, member_.roster_, std::move(call_));
    deadline_.restart();
    joined_ = true;
  }

  Member& member_;
  Call call_;
  Event there_;
  Deadline deadline_ = member_.meetings_.deadline();  // begins when it joined
  bool joined_ = false;
  std::shared_ptr<Meeting> meeting_;  // null: the run has failed
  bool finished_ = false;
};

PendingPtr ThreadGroup::Member::begin(Call call) {
  call.on_device = pool_ && lies_in(*pool_, call);
  return std::make_unique<UnderWay>(*this, std::move(call));
}

ThreadGroup::ThreadGroup(int workers, LinkSpec link, double timeout_s) {
  WISP_CHECK(workers > 0, "ThreadGroup: ", workers, " workers, expected at least 1");
  WISP_CHECK(link.gbit_per_s >= 0.0 && link.latency_us >= 0.0, "link: ", link.gbit_per_s,
             " Gbit/s and ", link.latency_us, " us, expected neither below 0");
  meetings_ = std::make_unique<ThreadMeetings>(workers, link, timeout_s);
  for (int rank = 0; rank < workers; ++rank)
    members_.push_back(std::make_unique<Member>(*meetings_, whole_roster(rank, workers)));
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::size() const { return meetings_->workers(); }

Communicator& ThreadGroup::communicator(int rank) {
  WISP_CHECK(rank >= 0 && rank < size(), "communicator: rank is ", rank, ", expected below ",
             size());
  return *members_[static_cast<size_t>(rank)];
}

void ThreadGroup::abort(int rank, const std::string& cause) { meetings_->abort(rank, cause); }

std::string ThreadGroup::failure() const { return meetings_->failure(); }

}  // namespace wisp
