// MPI: every collective is messages between each pair of ranks (distributed/communicator/mail.h).
// So every rank hears from every other, and knows who has come and what they call. MPI has no
// notification to sleep on, and its own waits spin; here a waiting thread sleeps between looks.
// Ranks do not pass messages on in log2(ranks) steps. In each such step a rank would wait for one
// that sleeps; among ranks that share a core, direct messages were as fast or faster.
#include "distributed/communicator/mpi_communicator.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/communicator/absent_ranks.h"
#include "distributed/communicator/deadline.h"
#include "distributed/communicator/host_communicator.h"
#include "distributed/communicator/mail.h"
#include "distributed/communicator/mpi_messages.h"
#include "distributed/communicator/mpi_peers.h"

namespace wisp {
namespace {

// A look takes a few microseconds. Pauses grow with the wait, so that the wait ends at most a third
// late, and costs little of a core that other ranks compute on.
constexpr double kShortestPauseUs = 20.0, kLongestPauseUs = 200.0, kPauseGrowth = 1.3;
constexpr double kLeaveS = 2.0;  // time for the others' messages after a failure

/// The state that the communicators of this process share.
struct MpiProcess {
  // MPI may use the memory of these until the session ends. `mutex` guards the list.
  std::vector<std::unique_ptr<MpiMessages>> unfinished;
  const MpiSession session;
  double timeout_s = 60.0;
  int generation = 0;  // of the latest group

  mutable std::mutex mutex;  // guards all calls of MPI, and the members below
  MpiPeers peers;
  const MPI_Comm comm = MpiSession::all();  // all groups' messages
};

class MpiCommunicator final : public HostCommunicator {
 public:
  MpiCommunicator(MpiProcess& process, Roster roster)
      : process_(process),
        roster_(std::move(roster)),
        messages_(std::make_unique<MpiMessages>(peers_, process.comm, roster_)) {
    process_.generation = roster_.generation;
  }
  ~MpiCommunicator() override {
    const std::lock_guard lock(mutex_);
    peers_.forget(this);
    if (mail_) process_.unfinished.push_back(std::move(messages_));
  }

  const Roster& roster() const override { return roster_; }
  std::unique_ptr<Communicator> split(int colour) override {
    return std::make_unique<MpiCommunicator>(process_, split_roster(colour, process_.generation));
  }
  void abort(const std::string& cause) override {
    const std::lock_guard lock(mutex_);
    peers_.fail(roster_.in_run(), cause);
  }
  std::string hear_failure() override;
  void on_progress(std::function<void()>) override {}

 private:
  using Lock = std::unique_lock<std::mutex>;
  class UnderWay;
  PendingPtr begin(Call call) override;
  void start_round();
  bool look();
  bool advance();
  bool accepts(int peer);
  Transfer finish();
  void look_after_peers();
  struct Missing;
  Missing missing() const;
  bool failed() const { return !peers_.failure().empty(); }

  MpiProcess& process_;
  std::mutex& mutex_ = process_.mutex;
  MpiPeers& peers_ = process_.peers;
  const Roster roster_;
  std::unique_ptr<MpiMessages> messages_;

  // The collective under way.
  std::optional<Mail> mail_;
  int64_t collectives_ = 0;  // collectives done
  int round_ = 0;
  double begin_us_ = 0.0, end_us_ = 0.0;  // time when all had come; time when done
  double looked_us_ = 0.0, pause_us_ = kShortestPauseUs;
  Deadline deadline_{process_.timeout_s};
};

class MpiCommunicator::UnderWay final : public Pending {
 public:
  explicit UnderWay(MpiCommunicator& owner) : owner_(owner) {}
  bool ready() override {
    const Lock lock(owner_.mutex_);
    return finished_ || owner_.look();
  }
  double ready_at_us() override {
    const Lock lock(owner_.mutex_);
    if (finished_ || owner_.look()) return 0.0;
    return owner_.looked_us_ + owner_.pause_us_;
  }
  Transfer wait() override {
    WISP_CHECK(!finished_, "wait: this collective has been waited for already");
    finished_ = true;
    return owner_.finish();
  }

 private:
  MpiCommunicator& owner_;
  bool finished_ = false;
};

// ---------------------------------------------------------------- a collective

PendingPtr MpiCommunicator::begin(Call call) {
  const Lock lock(mutex_);
  if (failed()) return std::make_unique<UnderWay>(*this);
  WISP_CHECK(!mail_, call.label.str(),
             ": the collective before it is still under way, wait() for it first");
  mail_.emplace(std::move(call), rank(), size());
  round_ = 0;
  pause_us_ = kShortestPauseUs;
  begin_us_ = now_us();
  deadline_ = Deadline(process_.timeout_s);
  if (const auto mismatch = mail_->check_own()) {
    peers_.fail(roster_.in_run(), mismatch->why);
  } else {
    start_round();
  }
  return std::make_unique<UnderWay>(*this);
}

void MpiCommunicator::start_round() {
  messages_->start_round(2 * collectives_ + round_);
  const bool same = mail_->same_for_all(round_);
  ConstBytes message;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (!same || message.bytes == 0)
      message = mail_->write(round_, peer, messages_->memory_for(same ? 0 : peer));
    messages_->send(peer, message);
  }
  messages_->send_more();
}

/// The ranks of the run for which a collective waits, and why.
struct MpiCommunicator::Missing {
  enum class Why { absent, slow, behind };
  std::vector<int> ranks;
  Why why = Why::absent;

  /// The words for `last`, which keep the ranks from coming, or the ranks themselves.
  std::string words(const std::vector<int>& last) const {
    if (why == Why::absent || last != ranks) return absent_words(last);
    return why == Why::slow ? "data of " + names_of(ranks)
                            : names_of(ranks) + " to take this rank's data";
  }
};

/// Progresses without waiting; fails a rank that is late. Returns whether wait() would not block.
bool MpiCommunicator::look() {
  peers_.hear();
  bool moved = false;
  while (!failed() && mail_ && advance()) moved = true;
  looked_us_ = now_us();
  if (failed()) return true;
  if (round_ == mail_->rounds()) {
    if (peers_.said_to_wait(this)) peers_.wait_for(this, {});
    return true;
  }
  look_after_peers();
  if (moved) {
    pause_us_ = kShortestPauseUs;
    deadline_.restart(looked_us_);
  } else {
    pause_us_ = std::min(kLongestPauseUs, pause_us_ * kPauseGrowth);
    if (deadline_.passed(looked_us_)) {
      const Missing missing = this->missing();
      peers_.fail(roster_.in_run(),
                  concat(mail_->label().str(), ": waited ", process_.timeout_s, " s for ",
                         missing.words(peers_.last_awaited(missing.ranks))));
    }
  }
  if (!failed() && (deadline_.is_long() || peers_.said_to_wait(this) || peers_.is_awaited()))
    peers_.wait_for(this, missing().ranks);
  return failed();
}

/// Does one thing that is possible now; returns false if there is none.
bool MpiCommunicator::advance() {
  if (round_ == mail_->rounds()) return false;
  const bool sent = messages_->send_more();
  if (messages_->receive([this](int peer) { return accepts(peer); }) || sent) return true;
  if (!messages_->all_accepted() || !messages_->all_are_sent()) return false;
  std::vector<ConstBytes> messages;
  for (int rank = 0; rank < size(); ++rank) messages.push_back(messages_->from(rank));
  if (round_ == 0) begin_us_ = messages_->all_came_us();
  mail_->read(round_, messages);
  ++round_;
  if (round_ < mail_->rounds()) {
    start_round();
  } else {
    end_us_ = now_us();
  }
  return true;
}

/// Whether the message from `peer` fits; if not, a rank fails.
bool MpiCommunicator::accepts(int peer) {
  const auto mismatch = mail_->check(round_, peer, messages_->from(peer));
  if (mismatch && mismatch->rank >= 0)
    peers_.fail(roster_.ranks[static_cast<size_t>(mismatch->rank)], mismatch->why);
  return !mismatch;
}

Transfer MpiCommunicator::finish() {
  Lock lock(mutex_);
  while (!look()) {
    const double pause = pause_us_;
    lock.unlock();
    sleep_us(pause);
    lock.lock();
  }
  if (failed()) throw Error(peers_.failure());
  const Traffic traffic = mail_->traffic();
  mail_.reset();
  ++collectives_;
  return {traffic.sent, traffic.received, begin_us_, end_us_};
}

MpiCommunicator::Missing MpiCommunicator::missing() const {
  std::vector<int> absent, slow, behind;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const bool here = messages_->is_here(peer);
    if (here && messages_->is_sent(peer)) continue;
    std::vector<int>& list = here                                      ? behind
                             : messages_->has_come(peer) || round_ > 0 ? slow
                                                                       : absent;
    list.push_back(roster_.ranks[static_cast<size_t>(peer)]);
  }
  if (!absent.empty()) return {absent, Missing::Why::absent};
  if (!slow.empty()) return {slow, Missing::Why::slow};
  return {behind, Missing::Why::behind};
}

// ---------------------------------------------------------------- failures

std::string MpiCommunicator::hear_failure() {
  const Lock lock(mutex_);
  peers_.hear();
  if (!failed()) look_after_peers();
  return peers_.failure();
}

void MpiCommunicator::look_after_peers() {
  peers_.look_after([&] { return mail_ ? mail_->label().str() : "work of their devices"; });
}

class MpiGroup final : public ProcessGroup {
 public:
  ~MpiGroup() override;
  int rank() const override { return process_.peers.rank(); }
  int size() const override { return process_.peers.size(); }
  int neighbours() const override { return process_.peers.neighbours(size()); }
  int cores() const override { return process_.peers.cores(); }
  int local_rank() const override { return process_.peers.neighbours(rank()); }
  void set_timeout(double timeout_s) override { process_.timeout_s = timeout_s; }
  Communicator& communicator(int of_rank) override {
    WISP_CHECK(of_rank == rank(), "communicator: rank is ", of_rank, ", but this process is rank ",
               rank());
    return communicator_;
  }
  void abort(int of_rank, const std::string& cause) override { communicator(of_rank).abort(cause); }
  std::string failure() const override {
    const std::lock_guard lock(process_.mutex);
    return process_.peers.failure();
  }
  bool ends_too(int peer, double limit_s) override;

 private:
  MpiProcess process_;
  MpiCommunicator communicator_{process_, whole_roster(rank(), size())};
};

/// Tells the others that this rank is about to end, and waits until they are too.
MpiGroup::~MpiGroup() {
  if (failure().empty()) return;
  process_.peers.say_leaving();
  const double limit_us = now_us() + kLeaveS * 1e6;
  for (int peer = 0; peer < size(); ++peer) ends_too(peer, (limit_us - now_us()) * 1e-6);
  std::fflush(nullptr);
  if (rank() != 0) sleep_us(kLeaveS * 1e6);  // rank 0 ends all processes, if it is alive
  MPI_Abort(MPI_COMM_WORLD, 1);
}

bool MpiGroup::ends_too(int peer, double limit_s) {
  const double limit_us = now_us() + limit_s * 1e6;
  bool left = false;
  while (process_.peers.is_peer(peer) && !process_.peers.gone(peer)) {
    {
      const std::lock_guard lock(process_.mutex);
      left = process_.peers.has_left(peer);
    }
    if (left || now_us() > limit_us) break;
    sleep_us(kLongestPauseUs);
  }
  return left;
}

}  // namespace

std::unique_ptr<ProcessGroup> join_mpi() { return std::make_unique<MpiGroup>(); }

}  // namespace wisp
