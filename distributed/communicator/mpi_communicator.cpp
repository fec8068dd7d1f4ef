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
// Before a longer message its size is sent, so that its receiver learns early who has come. MPI
// shows a message when all of it is there, which for a shorter one is soon.
constexpr int64_t kLongBytes = 131072;
// A long message travels in pieces that MPI sends unasked, because a receiver's request would queue
// behind all data in the other direction. MPI's header needs the rest of the limit. A receiver that
// is still in the round before may get pieces; MPI keeps them, at most a message of each peer.
constexpr int64_t kPieceBytes = MpiSession::kUnaskedBytes - 1024;
// Few pieces to another machine are under way at once, so that a failure's cause soon follows them.
constexpr size_t kFarPieces = 4;
constexpr int64_t kMostBytes = int64_t{1} << 40;  // of a message

void sleep_us(double us) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

bool is_done(MPI_Request& request) {
  int done = 0;
  mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
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
    bool known = false, here = false;  // its size is known; all of it has come
    int64_t bytes = 0;
    std::vector<std::byte> memory;
    std::vector<MPI_Request> pieces;  // in the order of the memory
    size_t arrived = 0;               // number of pieces

    ConstBytes message() const { return {memory.data(), bytes}; }
    std::byte* make_room(int64_t size);
  };
  /// The message to a rank in a round.
  struct Outgoing {
    int64_t size = 0;                // of a long message
    ConstBytes rest;                 // of a long message, not yet given to MPI
    std::vector<MPI_Request> sends;  // under way
    std::vector<std::byte> memory;
  };

  PendingPtr begin(Call call) override;
  void start_round();
  void start_send(int peer, const void* data, int64_t bytes);
  void send(int peer, ConstBytes message);
  bool send_more();
  void receive_pieces(int peer, int64_t bytes);
  bool look();
  bool advance();
  bool receive();
  bool hear_of_message();
  Transfer finish();
  void look_after_peers();
  std::string missing() const;
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
  int known_ = 0, here_ = 0;        // number of messages, in this round
  std::vector<Incoming> incoming_;  // indexed by rank
  std::vector<Outgoing> outgoing_;  // indexed by rank; if all get the same, it is in the first
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

/// The memory for a message of `size` bytes.
std::byte* MpiCommunicator::Incoming::make_room(int64_t size) {
  known = true;
  bytes = size;
  if (memory.size() < static_cast<size_t>(size)) memory.resize(static_cast<size_t>(size));
  return memory.data();
}

void MpiCommunicator::start_round() {
  known_ = here_ = 0;
  for (Incoming& incoming : incoming_) {
    incoming.known = incoming.here = false;
    incoming.pieces.clear();
    incoming.arrived = 0;
  }
  const bool same = mail_->same_for_all(round_);
  ConstBytes message;
  for (int peer = 0; peer < size(); ++peer) {
    if (!peers_.is_peer(peer)) continue;
    if (!same || message.bytes == 0)
      message = mail_->write(round_, peer, outgoing_[same ? 0 : static_cast<size_t>(peer)].memory);
    send(peer, message);
  }
  send_more();
}

void MpiCommunicator::start_send(int peer, const void* data, int64_t bytes) {
  mpi_check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag(), messages_,
                      &outgoing_[static_cast<size_t>(peer)].sends.emplace_back()),
            "MPI_Isend");
}

/// Sends a short message, or the size of a long one, whose pieces are left to send_more().
void MpiCommunicator::send(int peer, ConstBytes message) {
  if (message.bytes <= kLongBytes) return start_send(peer, message.data, message.bytes);
  Outgoing& outgoing = outgoing_[static_cast<size_t>(peer)];
  outgoing.size = message.bytes;
  outgoing.rest = message;
  start_send(peer, &outgoing.size, sizeof outgoing.size);
}

/// Sends the next pieces. Returns whether MPI needs nothing of any message any more.
bool MpiCommunicator::send_more() {
  bool all_sent = true;
  for (int peer = 0; peer < size(); ++peer) {
    Outgoing& to = outgoing_[static_cast<size_t>(peer)];
    std::erase_if(to.sends, is_done);
    const bool near = peers_.is_neighbour(peer);
    while (to.rest.bytes > 0 && (near || to.sends.size() < kFarPieces)) {
      const int64_t piece = std::min(kPieceBytes, to.rest.bytes);
      start_send(peer, to.rest.data, piece);
      to.rest = {to.rest.data + piece, to.rest.bytes - piece};
    }
    all_sent = all_sent && to.sends.empty();
  }
  return all_sent;
}

/// Receives the message of `bytes` bytes that `peer` sends next.
void MpiCommunicator::receive_pieces(int peer, int64_t bytes) {
  if (bytes <= kLongBytes || bytes > kMostBytes) return peers_.fail(peer, Mail::kForeign);
  Incoming& incoming = incoming_[static_cast<size_t>(peer)];
  std::byte* const memory = incoming.make_room(bytes);
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
  const bool all_sent = send_more();
  if (receive()) return true;
  if (here_ < size() - 1 || !all_sent) return false;
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
  bool moved = known_ < size() - 1 && hear_of_message();
  for (int peer = 0; peer < size() && !failed(); ++peer) {
    Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    if (!incoming.known || incoming.here) continue;
    while (incoming.arrived < incoming.pieces.size() &&
           is_done(incoming.pieces[incoming.arrived])) {
      ++incoming.arrived;
      moved = true;
    }
    if (incoming.arrived < incoming.pieces.size()) continue;
    incoming.here = true;
    const auto mismatch = mail_->check(round_, peer, incoming.message());
    if (!mismatch) {
      ++here_;
    } else if (mismatch->rank >= 0) {
      peers_.fail(mismatch->rank, mismatch->why);
    }
  }
  return moved;
}

/// Begins to receive the message of a peer that has come; returns false if none has.
bool MpiCommunicator::hear_of_message() {
  int found = 0, bytes = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpi_check(MPI_Improbe(MPI_ANY_SOURCE, tag(), messages_, &found, &message, &status),
            "MPI_Improbe");
  if (!found) return false;
  mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (++known_ == size() - 1 && round_ == 0) begin_us_ = now_us();
  int64_t size = 0;  // of a long message; a short one has more bytes than this
  static_assert(sizeof size < Mail::kLeastBytes);
  if (bytes == sizeof size) {
    mpi_check(MPI_Mrecv(&size, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    receive_pieces(status.MPI_SOURCE, size);
  } else {
    Incoming& incoming = incoming_[static_cast<size_t>(status.MPI_SOURCE)];
    mpi_check(MPI_Imrecv(incoming.make_room(bytes), bytes, MPI_BYTE, &message,
                         &incoming.pieces.emplace_back()),
              "MPI_Imrecv");
  }
  return true;
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
std::string MpiCommunicator::missing() const {
  std::string absent, slow, behind;
  int absentees = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (!peers_.is_peer(peer)) continue;
    const Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    if (incoming.here && outgoing_[static_cast<size_t>(peer)].sends.empty()) continue;
    std::string& list = incoming.here ? behind : incoming.known || round_ > 0 ? slow : absent;
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
