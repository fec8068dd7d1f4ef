#include "distributed/communicator/thread_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "core/device/storage.h"
#include "core/device/stream.h"
#include "distributed/communicator/deadline.h"
#include "distributed/communicator/device_moves.h"
#include "distributed/communicator/host_communicator.h"

namespace wisp {
namespace {

/// The meeting of the ranks for one collective. A waiting rank moves shares that no other has
/// taken, so no rank waits for one that has come and went on to compute.
struct Meeting {
  explicit Meeting(size_t workers)
      : calls(workers),
        came(workers),
        taken(workers),
        traffic(workers),
        ready_at_us(workers),
        moved_on_device(workers) {}

  std::vector<Call> calls;  // all vectors are by rank; complete when all have come
  std::vector<char> came, taken;
  std::vector<Traffic> traffic;
  std::vector<double> ready_at_us;     // time at which the link has carried the rank's bytes
  bool on_device = false;              // the memory is a device's, and streams move the shares
  std::vector<Event> moved_on_device;  // recorded when a share is moved
  size_t arrived = 0;
  size_t moving = 0, moved = 0;           // number of shares
  int deserter = -1;                      // a rank that gave up; its memory may be gone
  double begin_us = 0.0, moved_us = 0.0;  // time when all had come; time when all data was there

  bool complete() const { return arrived == calls.size(); }
  bool done() const { return moved == calls.size(); }
  /// Takes a share to move, preferably the rank's own; -1 if none is left.
  int take_share(int rank) {
    if (deserter >= 0) return -1;
    for (size_t i = 0; i < taken.size(); ++i) {
      const size_t share = (static_cast<size_t>(rank) + i) % taken.size();
      if (!std::exchange(taken[share], 1)) return static_cast<int>(share);
    }
    return -1;
  }
};

}  // namespace

class ThreadGroup::State {
 public:
  State(int workers, LinkSpec link, double timeout_s)
      : workers_(workers),
        link_(link),
        timeout_s_(timeout_s),
        under_way_(static_cast<size_t>(workers)),
        listeners_(static_cast<size_t>(workers)) {}

  int workers() const { return workers_; }
  std::string failure() const;
  void abort(int rank, const std::string& cause);
  void listen(int rank, std::function<void()> notify);

  /// Hands in a rank's side of its next collective; null if the group has failed.
  std::shared_ptr<Meeting> join(int rank, Call call);
  /// The time limit of a rank's wait for the others.
  Deadline deadline() const { return Deadline(timeout_s_); }
  double ready_at_us(const Meeting* meeting, int rank, Deadline& deadline) const;
  /// `stream` is the rank's stream of a device, or null.
  Transfer finish(Meeting* meeting, int rank, const Stream* stream, Deadline& deadline);
  /// Ends a collective that the rank will not finish. Afterwards nobody touches its memory.
  void desert(Meeting& meeting, int rank) noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Listener {
    std::mutex mutex;
    std::function<void()> notify;
  };

  void fail(int rank, const std::string& cause);
  void open(Meeting& meeting);
  bool carry_out(Lock& lock, Meeting& meeting, int rank, const Stream* stream, Deadline& deadline);
  void move_shares(Lock& lock, Meeting& meeting, int rank, const Stream* stream);
  static std::string submit_share(const Stream& stream, Meeting& meeting, int share);
  void leave(Lock& lock, Meeting& meeting, int rank);
  static void settle(const Meeting& meeting) noexcept;
  void notify_listeners(int but);
  std::string missing(const Meeting& meeting) const;
  void sleep(Lock& lock, double until_us);
  template <class Condition>
  bool wait(Lock& lock, Deadline& deadline, const Condition& condition);

  const int workers_;
  const LinkSpec link_;
  const double timeout_s_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string failure_;
  std::shared_ptr<Meeting> gathering_;  // meeting that some ranks have not joined yet
  std::vector<char> under_way_;         // indexed by rank: it has a collective to finish
  std::vector<Listener> listeners_;
};

std::string ThreadGroup::State::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void ThreadGroup::State::fail(int rank, const std::string& cause) {
  const std::string said = cause.empty() ? "no cause given" : cause;
  if (failure_.empty()) failure_ = workers_ > 1 ? concat("rank ", rank, ": ", said) : said;
  changed_.notify_all();
}

void ThreadGroup::State::abort(int rank, const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    fail(rank, cause);
  }
  notify_listeners(-1);
}

void ThreadGroup::State::listen(int rank, std::function<void()> notify) {
  Listener& listener = listeners_[static_cast<size_t>(rank)];
  std::lock_guard lock(listener.mutex);
  listener.notify = std::move(notify);
}

void ThreadGroup::State::notify_listeners(int but) {
  for (int rank = 0; rank < workers_; ++rank) {
    if (rank == but) continue;
    Listener& listener = listeners_[static_cast<size_t>(rank)];
    std::lock_guard lock(listener.mutex);
    if (listener.notify) listener.notify();
  }
}

std::shared_ptr<Meeting> ThreadGroup::State::join(int rank, Call call) {
  const auto index = static_cast<size_t>(rank);
  std::shared_ptr<Meeting> meeting;
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) return nullptr;
    WISP_CHECK(!under_way_[index], call.label.str(),
               ": the collective before it is still under way, wait() for it first");
    if (!gathering_) gathering_ = std::make_shared<Meeting>(static_cast<size_t>(workers_));
    meeting = gathering_;
    meeting->on_device = meeting->on_device || call.on_device;
    meeting->calls[index] = std::move(call);
    meeting->came[index] = 1;
    under_way_[index] = 1;
    if (++meeting->arrived < meeting->calls.size()) return meeting;
    gathering_ = nullptr;
    open(*meeting);
  }
  notify_listeners(rank);
  return meeting;
}

/// Begins the transfer when all ranks have come.
void ThreadGroup::State::open(Meeting& meeting) {
  if (const Mismatch mismatch = find_mismatch(meeting.calls); !mismatch.why.empty())
    return fail(mismatch.rank, mismatch.why);
  meeting.begin_us = now_us();
  double slowest = 0.0;
  for (int rank = 0; rank < workers_; ++rank) {
    const auto index = static_cast<size_t>(rank);
    const Traffic traffic = traffic_of(meeting.calls[index], rank, workers_);
    meeting.traffic[index] = traffic;
    meeting.ready_at_us[index] =
        meeting.begin_us + duration_us(link_, traffic.sent, traffic.received, traffic.steps);
    slowest = std::max(slowest, meeting.ready_at_us[index]);
  }
  // Every rank hears from the slowest, but in an exchange a rank needs only its own messages.
  if (meeting.calls[0].label.kind != Call::Kind::exchange)
    meeting.ready_at_us.assign(meeting.ready_at_us.size(), slowest);
  changed_.notify_all();
}

double ThreadGroup::State::ready_at_us(const Meeting* meeting, int rank, Deadline& deadline) const {
  std::lock_guard lock(mutex_);
  if (!failure_.empty()) return 0.0;
  if (meeting->complete()) return meeting->ready_at_us[static_cast<size_t>(rank)];
  return deadline.passed() ? 0.0 : deadline.next_us();
}

/// Sleeps until a change, or about until `until_us`.
void ThreadGroup::State::sleep(Lock& lock, double until_us) {
  changed_.wait_for(lock, std::chrono::duration<double, std::micro>(until_us - now_us()));
}

/// Waits for `condition`; returns false if the deadline passes first.
template <class Condition>
bool ThreadGroup::State::wait(Lock& lock, Deadline& deadline, const Condition& condition) {
  while (!condition()) {
    if (deadline.passed()) return false;
    sleep(lock, deadline.next_us());
  }
  return true;
}

Transfer ThreadGroup::State::finish(Meeting* meeting, int rank, const Stream* stream,
                                    Deadline& deadline) {
  const auto index = static_cast<size_t>(rank);
  Lock lock(mutex_);
  if (failure_.empty() && !carry_out(lock, *meeting, rank, stream, deadline))
    fail(rank, concat(meeting->calls[index].label.str(), ": waited ", timeout_s_, " s for ",
                      missing(*meeting)));
  if (meeting) leave(lock, *meeting, rank);
  if (!failure_.empty()) {
    const std::string failure = failure_;
    lock.unlock();
    notify_listeners(rank);
    throw Error(failure);
  }
  under_way_[index] = 0;
  const Traffic& traffic = meeting->traffic[index];
  const double end_us = std::max(meeting->moved_us, meeting->ready_at_us[index]);
  return {traffic.sent, traffic.received, meeting->begin_us, end_us};
}

/// Returns false if another rank did not come, or did not finish, in time.
bool ThreadGroup::State::carry_out(Lock& lock, Meeting& meeting, int rank, const Stream* stream,
                                   Deadline& deadline) {
  const auto failed = [&] { return !failure_.empty(); };
  if (!wait(lock, deadline, [&] { return failed() || meeting.complete(); })) return false;
  move_shares(lock, meeting, rank, stream);
  deadline.restart();
  if (!wait(lock, deadline, [&] { return failed() || meeting.done(); })) return false;
  const double carried_us = meeting.ready_at_us[static_cast<size_t>(rank)];
  while (!failed() && now_us() < carried_us) sleep(lock, carried_us);
  if (meeting.on_device && failure_.empty()) {
    for (const Event& moved : meeting.moved_on_device) moved.wait(*stream);
  }
  return true;
}

void ThreadGroup::State::move_shares(Lock& lock, Meeting& meeting, int rank, const Stream* stream) {
  while (failure_.empty()) {
    const int share = meeting.take_share(rank);
    if (share < 0) return;
    ++meeting.moving;
    lock.unlock();
    std::string failure;
    if (meeting.on_device) {
      failure = submit_share(*stream, meeting, share);
    } else {
      move_share(meeting.calls, share);
    }
    lock.lock();
    if (!failure.empty()) fail(rank, failure);
    --meeting.moving;
    ++meeting.moved;
    if (meeting.done()) meeting.moved_us = now_us();
    if (meeting.moving == 0) changed_.notify_all();
  }
}

/// Submits the movement of a share to `stream`. Returns the reason if that failed, else empty.
std::string ThreadGroup::State::submit_share(const Stream& stream, Meeting& meeting, int share) {
  try {
    move_device_share(stream, meeting.calls, share);
    meeting.moved_on_device[static_cast<size_t>(share)].record(stream);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

/// Ends a rank's part. In an unfinished meeting, waits for shares that still move in its memory.
void ThreadGroup::State::leave(Lock& lock, Meeting& meeting, int rank) {
  if (!meeting.done()) {
    meeting.deserter = rank;
    changed_.wait(lock, [&] { return meeting.moving == 0; });
    settle(meeting);
  }
}

/// Waits until devices have moved the submitted shares.
void ThreadGroup::State::settle(const Meeting& meeting) noexcept {
  if (!meeting.on_device) return;
  for (const Event& moved : meeting.moved_on_device) {
    try {
      moved.synchronize();
    } catch (const std::exception& failure) {  // the submitter gets the failure
    }
  }
}

void ThreadGroup::State::desert(Meeting& meeting, int rank) noexcept {
  Lock lock(mutex_);
  leave(lock, meeting, rank);
}

/// The ranks for which a meeting waits.
std::string ThreadGroup::State::missing(const Meeting& meeting) const {
  if (meeting.complete() && meeting.deserter < 0) return "data that another rank moves";
  if (meeting.complete()) return concat("rank ", meeting.deserter, ", which gave up");
  std::string ranks;
  for (int rank = 0; rank < workers_; ++rank) {
    if (!meeting.came[static_cast<size_t>(rank)])
      ranks += concat(ranks.empty() ? "rank " : ", rank ", rank);
  }
  return ranks +
         (workers_ - static_cast<int>(meeting.arrived) > 1 ? ", which have" : ", which has") +
         " not come";
}

class ThreadGroup::Member final : public HostCommunicator {
 public:
  Member(State& state, int rank) : state_(state), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return state_.workers(); }

  void abort(const std::string& cause) override { state_.abort(rank_, cause); }
  std::string hear_failure() override { return state_.failure(); }
  void on_progress(std::function<void()> notify) override {
    state_.listen(rank_, std::move(notify));
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

  State& state_;
  int rank_;
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
    if (meeting_ && !finished_) member_.state_.desert(*meeting_, member_.rank_);
  }
  bool ready() override {
    const double at_us = ready_at_us();
    return joined_ && at_us <= now_us();
  }
  double ready_at_us() override {
    if (!joined_ && there_.reached()) join();
    return joined_ ? member_.state_.ready_at_us(meeting_.get(), member_.rank_, deadline_) : 0.0;
  }
  Transfer wait() override {
    WISP_CHECK(!finished_, "wait: this collective has been waited for already");
    if (!joined_) {
      there_.synchronize();
      join();
    }
    finished_ = true;
    return member_.state_.finish(meeting_.get(), member_.rank_, member_.stream(), deadline_);
  }

 private:
  void join() {
    meeting_ = member_.state_.join(member_.rank_, std::move(call_));
    deadline_.restart();
    joined_ = true;
  }

  Member& member_;
  Call call_;
  Event there_;
  Deadline deadline_ = member_.state_.deadline();  // begins when it joined
  bool joined_ = false;
  std::shared_ptr<Meeting> meeting_;  // null: the group has failed
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
  state_ = std::make_unique<State>(workers, link, timeout_s);
  for (int rank = 0; rank < workers; ++rank)
    members_.push_back(std::make_unique<Member>(*state_, rank));
}

ThreadGroup::~ThreadGroup() = default;

int ThreadGroup::size() const { return state_->workers(); }

Communicator& ThreadGroup::communicator(int rank) {
  WISP_CHECK(rank >= 0 && rank < size(), "communicator: rank is ", rank, ", expected below ",
             size());
  return *members_[static_cast<size_t>(rank)];
}

void ThreadGroup::abort(int rank, const std::string& cause) { state_->abort(rank, cause); }

std::string ThreadGroup::failure() const { return state_->failure(); }

}  // namespace wisp
