// MPI: every collective is messages between each pair of ranks (distributed/communicator/mail.h).
// So every rank hears from every other, and knows who has come and what they call. MPI has no
// notification to sleep on, and its own waits spin; here a waiting thread sleeps between looks.
#include "distributed/communicator/mpi_communicator.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/communicator/deadline.h"
#include "distributed/communicator/host_communicator.h"
#include "distributed/communicator/mail.h"
#include "distributed/communicator/mpi_peers.h"

namespace wisp {
namespace {

// A look takes a few microseconds. Pauses grow with the wait, so that the wait ends at most a third
// late, and costs little of a core that other ranks compute on.
constexpr double kShortestPauseUs = 20.0, kLongestPauseUs = 200.0, kPauseGrowth = 1.3;
constexpr double kLeaveS = 2.0;  // time for the others' messages after a failure
constexpr int kFirstMessageTag = 16, kMessageTags = 16384;
// A message of more bytes is announced, as MPI may show it to its receiver only when complete.
constexpr int64_t kLongBytes = 131072;
// An announced message travels in pieces of so many bytes. MPI must send a piece without asking its
// receiver (MpiSession sees to it): the request would queue behind all data in the other direction.
constexpr int64_t kPieceBytes = 256000;
constexpr int kAnnouncementBytes = 8;  // no message is as short: each begins with its call

void sleep_us(double us) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

/// Whether all have ended, which leaves none.
bool all_done(std::vector<MPI_Request>& requests) {
  int done = 0;
  mpi_check(
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
      "MPI_Testall");
  if (done) requests.clear();
  return done != 0;
}

class MpiCommunicator final : public HostCommunicator {
 public:
  MpiCommunicator();
  ~MpiCommunicator() override;

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }

  void abort(const std::string& cause) override {
    const std::lock_guard lock(mutex_);
    peers_.fail(rank(), cause);
  }
  std::string hear_failure() override;
  void on_progress(std::function<void()>) override {}

  std::string failure() const {
    const std::lock_guard lock(mutex_);
    return peers_.failure();
  }
  void set_timeout(double timeout_s) { timeout_s_ = timeout_s; }
  /// Number of ranks below `end` on this rank's machine.
  int neighbours(int end) const { return peers_.neighbours(end); }
  bool left(int peer, double limit_s);
  void leave();

 private:
  using Lock = std::unique_lock<std::mutex>;
  class UnderWay;
  /// The message from a rank in a round.
  struct Incoming {
    bool announced = false, here = false;  // its size is known; all of it has come
    std::vector<MPI_Request> pieces;
    std::vector<std::byte> memory;
    int64_t bytes = 0;

    ConstBytes message() const { return {memory.data(), bytes}; }
    std::byte* resize(int64_t size);
  };
  /// The message to a rank in a round.
  struct Outgoing {
    int64_t announcement = 0;  // the message's size
    std::vector<MPI_Request> sends;
    std::vector<std::byte> memory;
  };

  PendingPtr begin(Call call) override;
  void start_round();
  void send(int peer, ConstBytes message);
  void expect(int peer, int64_t bytes);
  bool look();
  bool advance();
  bool receive();
  bool sent();
  Transfer finish();
  void look_after_peers();
  std::string missing();
  bool failed() const { return !peers_.failure().empty(); }
  int tag() const {
    return kFirstMessageTag + static_cast<int>((2 * collectives_ + round_) % kMessageTags);
  }

  const MpiSession session_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  double timeout_s_ = 60.0;

  mutable std::mutex mutex_;  // guards all calls of MPI, and the members below
  MpiPeers peers_;

  // The collective under way.
  std::optional<Mail> mail_;
  int64_t collectives_ = 0;  // collectives done
  int round_ = 0;
  int announced_ = 0, here_ = 0;          // number of peers, in this round
  std::vector<Incoming> incoming_;        // indexed by rank
  std::vector<Outgoing> outgoing_;        // indexed by rank; if all get the same, the first has it
  double begin_us_ = 0.0, end_us_ = 0.0;  // time when all had come; time when done
  double looked_us_ = 0.0, pause_us_ = kShortestPauseUs;
  Deadline deadline_{timeout_s_};
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

MpiCommunicator::MpiCommunicator()
    : messages_(MpiSession::all()),
      incoming_(static_cast<size_t>(size())),
      outgoing_(static_cast<size_t>(size())) {}

MpiCommunicator::~MpiCommunicator() {
  if (!failed()) return;
  leave();
  std::fflush(nullptr);
  if (rank() != 0) sleep_us(kLeaveS * 1e6);  // rank 0 ends all processes, if it is alive
  MPI_Abort(MPI_COMM_WORLD, 1);
}

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
  deadline_ = Deadline(timeout_s_);
  if (const auto mismatch = mail_->check_own()) {
    peers_.fail(mismatch->rank, mismatch->why);
  } else {
    start_round();
  }
  return std::make_unique<UnderWay>(*this);
}

std::byte* MpiCommunicator::Incoming::resize(int64_t size) {
  announced = true;
  bytes = size;
  if (memory.size() < static_cast<size_t>(size)) memory.resize(static_cast<size_t>(size));
  return memory.data();
}

void MpiCommunicator::start_round() {
  announced_ = here_ = 0;
  for (Incoming& incoming : incoming_) incoming.announced = incoming.here = false;
  const bool same = mail_->same_for_all(round_);
  ConstBytes message;
  for (int peer = 0; peer < size(); ++peer) {
    if (!peers_.is_peer(peer)) continue;
    if (!same || message.bytes == 0)
      message = mail_->write(round_, peer, outgoing_[same ? 0 : static_cast<size_t>(peer)].memory);
    send(peer, message);
  }
}

/// Starts to send a message. Before a long one its size is sent. That also tells the receiver when
/// this rank has come, which is the begin of the time on the wire.
void MpiCommunicator::send(int peer, ConstBytes message) {
  Outgoing& outgoing = outgoing_[static_cast<size_t>(peer)];
  const auto start = [&](const void* data, int64_t bytes) {
    mpi_check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag(), messages_,
                        &outgoing.sends.emplace_back()),
              "MPI_Isend");
  };
  if (message.bytes <= kLongBytes) return start(message.data, message.bytes);
  outgoing.announcement = message.bytes;
  start(&outgoing.announcement, kAnnouncementBytes);
  for (int64_t at = 0; at < message.bytes; at += kPieceBytes)
    start(message.data + at, std::min(kPieceBytes, message.bytes - at));
}

/// Receives the pieces of the message that `peer` has announced.
void MpiCommunicator::expect(int peer, int64_t bytes) {
  Incoming& incoming = incoming_[static_cast<size_t>(peer)];
  std::byte* const memory = incoming.resize(bytes);
  for (int64_t at = 0; at < bytes; at += kPieceBytes)
    mpi_check(MPI_Irecv(memory + at, static_cast<int>(std::min(kPieceBytes, bytes - at)), MPI_BYTE,
                        peer, tag(), messages_, &incoming.pieces.emplace_back()),
              "MPI_Irecv");
}

/// Progresses without waiting; fails a rank that is late. Returns whether wait() would not block.
bool MpiCommunicator::look() {
  peers_.hear();
  bool moved = false;
  while (!failed() && mail_ && advance()) moved = true;
  looked_us_ = now_us();
  if (failed() || round_ == mail_->rounds()) return true;
  look_after_peers();
  if (moved) {
    pause_us_ = kShortestPauseUs;
    deadline_.restart(looked_us_);
  } else {
    pause_us_ = std::min(kLongestPauseUs, pause_us_ * kPauseGrowth);
    if (deadline_.passed(looked_us_))
      peers_.fail(rank(),
                  concat(mail_->label().str(), ": waited ", timeout_s_, " s for ", missing()));
  }
  return failed();
}

/// Does one thing that is possible now; returns false if there is none.
bool MpiCommunicator::advance() {
  if (round_ == mail_->rounds()) return false;
  if (receive()) return true;
  if (here_ < size() - 1 || !sent()) return false;
  std::vector<ConstBytes> messages;
  for (const Incoming& incoming : incoming_) messages.push_back(incoming.message());
  mail_->read(round_, messages);
  ++round_;
  if (round_ < mail_->rounds()) {
    start_round();
  } else {
    end_us_ = now_us();
  }
  return true;
}

/// Takes in what has arrived; returns false if nothing has.
bool MpiCommunicator::receive() {
  bool moved = false;
  if (announced_ < size() - 1) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi_check(MPI_Improbe(MPI_ANY_SOURCE, tag(), messages_, &found, &message, &status),
              "MPI_Improbe");
    if (found) {
      Incoming& incoming = incoming_[static_cast<size_t>(status.MPI_SOURCE)];
      int bytes = 0;
      mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      if (++announced_ == size() - 1 && round_ == 0) begin_us_ = now_us();
      if (bytes == kAnnouncementBytes) {
        int64_t announced = 0;
        mpi_check(MPI_Mrecv(&announced, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        expect(status.MPI_SOURCE, announced);
      } else {
        mpi_check(MPI_Imrecv(incoming.resize(bytes), bytes, MPI_BYTE, &message,
                             &incoming.pieces.emplace_back()),
                  "MPI_Imrecv");
      }
      moved = true;
    }
  }
  for (int peer = 0; peer < size() && !failed(); ++peer) {
    Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    if (!incoming.announced || incoming.here) continue;
    if (!all_done(incoming.pieces)) continue;
    incoming.here = moved = true;
    const auto mismatch = mail_->check(round_, peer, incoming.message());
    if (!mismatch) {
      ++here_;
    } else if (mismatch->rank >= 0) {
      peers_.fail(mismatch->rank, mismatch->why);
    }
  }
  return moved;
}

/// Whether the others have taken everything. The rest of a message may need this rank's help.
bool MpiCommunicator::sent() {
  return std::ranges::all_of(outgoing_, [](Outgoing& to) { return all_done(to.sends); });
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

/// The ranks for which the collective waits.
std::string MpiCommunicator::missing() {
  std::string absent, slow, behind;
  int absentees = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (!peers_.is_peer(peer)) continue;
    const Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    if (incoming.here && all_done(outgoing_[static_cast<size_t>(peer)].sends)) continue;
    std::string& list = incoming.here ? behind : incoming.announced || round_ > 0 ? slow : absent;
    list += concat(list.empty() ? "rank " : ", rank ", peer);
    absentees += &list == &absent;
  }
  if (!absent.empty())
    return absent + (absentees > 1 ? ", which have not come" : ", which has not come");
  if (!slow.empty()) return "data of " + slow;
  return behind + " to take this rank's data";
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

/// Tells the others that this rank is about to end, and waits until they are too.
void MpiCommunicator::leave() {
  peers_.say_leaving();
  const double limit_us = now_us() + kLeaveS * 1e6;
  for (int peer = 0; peer < size(); ++peer) left(peer, (limit_us - now_us()) * 1e-6);
}

bool MpiCommunicator::left(int peer, double limit_s) {
  const double limit_us = now_us() + limit_s * 1e6;
  bool left = false;
  while (peers_.is_peer(peer) && !peers_.gone(peer)) {
    {
      const Lock lock(mutex_);
      left = peers_.has_left(peer);
    }
    if (left || now_us() > limit_us) break;
    sleep_us(kLongestPauseUs);
  }
  return left;
}

class MpiGroup final : public ProcessGroup {
 public:
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  int neighbours() const override { return communicator_.neighbours(size()); }
  int local_rank() const override { return communicator_.neighbours(rank()); }
  void set_timeout(double timeout_s) override { communicator_.set_timeout(timeout_s); }
  Communicator& communicator(int rank) override {
    WISP_CHECK(rank == communicator_.rank(), "communicator: rank is ", rank,
               ", but this process is rank ", communicator_.rank());
    return communicator_;
  }
  void abort(int rank, const std::string& cause) override { communicator(rank).abort(cause); }
  std::string failure() const override { return communicator_.failure(); }
  bool ends_too(int peer, double limit_s) override { return communicator_.left(peer, limit_s); }

 private:
  MpiCommunicator communicator_;
};

}  // namespace

std::unique_ptr<ProcessGroup> join_mpi() { return std::make_unique<MpiGroup>(); }

}  // namespace wisp
