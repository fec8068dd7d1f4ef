// Every collective is messages between each pair of ranks (distributed/communicator/mail.h), so
// every rank hears from every other and knows who has come, and what they call. MPI has no
// notification that one could sleep on, and its own waits spin; here a waiting thread sleeps
// between looks.
#include "distributed/communicator/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/communicator/deadline.h"
#include "distributed/communicator/host_communicator.h"
#include "distributed/communicator/mail.h"
#include "distributed/communicator/place.h"

namespace wisp {
namespace {

// A look takes a few microseconds. Pauses grow with the wait, so that it ends at most a third late
// and costs little of a core that other ranks compute on.
constexpr double kShortestPauseUs = 20.0, kLongestPauseUs = 200.0, kPauseGrowth = 1.3;
constexpr double kPeersUs = 20e3;  // between looks whether the other processes live
constexpr double kLeaveS = 2.0;    // for the others' last words after a failure
constexpr int kFailureTag = 1, kLeavingTag = 2;
constexpr int kFirstMessageTag = 16, kMessageTags = 16384;
constexpr int64_t kLongBytes = 131072;  // a message that is seen late, once it has come whole
constexpr size_t kLongestCause = 1000;  // so that it is sent without waiting for its receiver

void mpi_check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(concat(what, ": ", text));
}

/// Open MPI's variables for TCP, unless the user has set them. Of a long message it sends the rest
/// when the receiver asks for it, and that request stands behind what goes the other way: by
/// default ("put") behind all of it, so that the directions of an exchange take turns and it lasts
/// twice as long. In fragments a request waits for what is in the socket's buffer; up to 256 KiB
/// nothing is asked.
void let_directions_travel_at_once() {
  setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0);
  setenv("OMPI_MCA_btl_tcp_eager_limit", "262144", 0);
  setenv("OMPI_MCA_btl_tcp_max_send_size", "262144", 0);
}

void sleep_us(double us) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

class MpiCommunicator final : public HostCommunicator {
 public:
  MpiCommunicator();
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void abort(const std::string& cause) override {
    const std::lock_guard lock(mutex_);
    fail(rank_, cause);
  }
  std::string hear_failure() override;
  void on_progress(std::function<void()>) override {}

  std::string failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  void set_timeout(double timeout_s) { timeout_s_ = timeout_s; }
  /// Ranks below `end` on this one's machine.
  int neighbours(int end) const;
  bool left(int peer, double limit_s);
  void leave();

 private:
  using Lock = std::unique_lock<std::mutex>;
  class UnderWay;
  /// What comes from one rank in a round.
  struct Incoming {
    bool heard = false, announced = false, here = false;  // of the rank, its message, all of that
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> memory;
    int64_t bytes = 0;

    ConstBytes message() const { return {memory.data(), bytes}; }
  };

  PendingPtr begin(Call call) override;
  void start_round();
  void say_hello(int peer);
  bool look();
  bool advance();
  bool receive();
  bool sent();
  Transfer finish();
  void hear_failures();
  void look_after_peers();
  void fail(int rank, const std::string& cause);
  void tell_others(const std::string& words, int tag);
  std::string missing() const;
  bool is_peer(int rank) const { return rank != rank_; }
  bool gone(int peer) const;
  int tag() const {
    return kFirstMessageTag + static_cast<int>((2 * collectives_ + round_) % kMessageTags);
  }

  bool owns_mpi_ = false;
  int rank_ = 0, size_ = 1;
  MPI_Comm messages_ = MPI_COMM_NULL, failures_ = MPI_COMM_NULL;
  std::vector<Place> places_;  // by rank
  double timeout_s_ = 60.0;

  mutable std::mutex mutex_;  // of all calls of MPI, and of what follows
  std::string failure_;
  std::vector<char> left_;  // by rank: it is about to end, and has said so
  double peers_looked_us_ = 0.0;

  // the collective under way
  std::optional<Mail> mail_;
  int64_t collectives_ = 0;  // done
  int round_ = 0;
  int heard_ = 0, announced_ = 0, here_ = 0;      // peers, in this round
  std::vector<Incoming> incoming_;                // by rank
  std::vector<std::vector<std::byte>> outgoing_;  // by rank; the first alone if all get the same
  std::vector<MPI_Request> sends_;
  double begin_us_ = 0.0, end_us_ = 0.0;  // all had come; done
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

MpiCommunicator::MpiCommunicator() {
  int started = 0, provided = MPI_THREAD_SINGLE;
  mpi_check(MPI_Initialized(&started), "MPI_Initialized");
  if (!started) {
    let_directions_travel_at_once();
    mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init");
    owns_mpi_ = true;
  } else {
    mpi_check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  WISP_CHECK(provided >= MPI_THREAD_SERIALIZED, "this MPI gives thread level ", provided,
             ", but a comm thread calls it: at least MPI_THREAD_SERIALIZED (",
             MPI_THREAD_SERIALIZED, ") is needed; install an MPI that was built with threads");
  for (MPI_Comm* own : {&messages_, &failures_}) {
    mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, own), "MPI_Comm_dup");
    mpi_check(MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  mpi_check(MPI_Comm_rank(messages_, &rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(messages_, &size_), "MPI_Comm_size");
  const auto ranks = static_cast<size_t>(size_);
  places_.resize(ranks);
  const Place own = Place::own();
  mpi_check(MPI_Allgather(&own, sizeof(Place), MPI_BYTE, places_.data(), sizeof(Place), MPI_BYTE,
                          messages_),
            "MPI_Allgather");
  left_.resize(ranks);
  incoming_.resize(ranks);
  outgoing_.resize(ranks);
}

MpiCommunicator::~MpiCommunicator() {
  if (!failure_.empty()) {
    leave();
    std::fflush(nullptr);
    if (rank_ != 0) sleep_us(kLeaveS * 1e6);  // one is enough to end all, if it is there
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (owns_mpi_) MPI_Finalize();
}

int MpiCommunicator::neighbours(int end) const {
  const Place& own = places_[static_cast<size_t>(rank_)];
  return static_cast<int>(
      std::count_if(places_.begin(), places_.begin() + end,
                    [&](const Place& place) { return place.same_machine(own); }));
}

// ---------------------------------------------------------------- a collective

PendingPtr MpiCommunicator::begin(Call call) {
  const Lock lock(mutex_);
  if (!failure_.empty()) return std::make_unique<UnderWay>(*this);
  WISP_CHECK(!mail_, call.label.str(),
             ": the collective before it is still under way, wait() for it first");
  mail_.emplace(std::move(call), rank_, size_);
  round_ = 0;
  pause_us_ = kShortestPauseUs;
  begin_us_ = now_us();
  deadline_ = Deadline(timeout_s_);
  if (const auto mismatch = mail_->check_own()) {
    fail(mismatch->rank, mismatch->why);
  } else {
    start_round();
  }
  return std::make_unique<UnderWay>(*this);
}

void MpiCommunicator::start_round() {
  heard_ = announced_ = here_ = 0;
  for (Incoming& incoming : incoming_) incoming.heard = incoming.announced = incoming.here = false;
  const bool same = mail_->same_for_all(round_);
  ConstBytes message;
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    if (!same || message.bytes == 0)
      message = mail_->write(round_, peer, outgoing_[same ? 0 : static_cast<size_t>(peer)]);
    WISP_CHECK(message.bytes <= INT_MAX, mail_->label().str(), ": a message of ", message.bytes,
               " bytes, MPI carries at most ", INT_MAX,
               "; a smaller compression.bucket_bytes helps");
    if (round_ == 0 && message.bytes > kLongBytes) say_hello(peer);
    mpi_check(MPI_Isend(message.data, static_cast<int>(message.bytes), MPI_BYTE, peer, tag(),
                        messages_, &sends_.emplace_back()),
              "MPI_Isend");
  }
}

/// An empty message in front of a long one: its receiver sees when this rank has come, which the
/// time on the wire begins with.
void MpiCommunicator::say_hello(int peer) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Isend(nullptr, 0, MPI_BYTE, peer, tag(), messages_, &request), "MPI_Isend");
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): freed, not waited for
}

/// Moves on as far as possible without waiting; a rank that is late has failed. True if wait() need
/// not wait.
bool MpiCommunicator::look() {
  hear_failures();
  bool moved = false;
  while (failure_.empty() && mail_ && advance()) moved = true;
  looked_us_ = now_us();
  if (!failure_.empty() || round_ == mail_->rounds()) return true;
  if (looked_us_ - peers_looked_us_ > kPeersUs) look_after_peers();
  if (moved) {
    pause_us_ = kShortestPauseUs;
    deadline_.restart(looked_us_);
  } else {
    pause_us_ = std::min(kLongestPauseUs, pause_us_ * kPauseGrowth);
    if (deadline_.passed(looked_us_))
      fail(rank_, concat(mail_->label().str(), ": waited ", timeout_s_, " s for ", missing()));
  }
  return !failure_.empty();
}

/// One thing that can be done now; false if there is none.
bool MpiCommunicator::advance() {
  if (round_ == mail_->rounds()) return false;
  if (receive()) return true;
  if (here_ < size_ - 1 || !sent()) return false;
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

/// Takes what has come in; false if nothing has.
bool MpiCommunicator::receive() {
  bool moved = false;
  if (announced_ < size_ - 1) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi_check(MPI_Improbe(MPI_ANY_SOURCE, tag(), messages_, &found, &message, &status),
              "MPI_Improbe");
    if (found) {
      Incoming& incoming = incoming_[static_cast<size_t>(status.MPI_SOURCE)];
      int bytes = 0;
      mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      if (!std::exchange(incoming.heard, true) && ++heard_ == size_ - 1 && round_ == 0)
        begin_us_ = now_us();
      if (bytes == 0) {
        mpi_check(MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        return true;
      }
      incoming.bytes = bytes;
      if (incoming.memory.size() < static_cast<size_t>(bytes))
        incoming.memory.resize(static_cast<size_t>(bytes));
      mpi_check(MPI_Imrecv(incoming.memory.data(), bytes, MPI_BYTE, &message, &incoming.request),
                "MPI_Imrecv");
      incoming.announced = moved = true;
      ++announced_;
    }
  }
  for (int peer = 0; peer < size_ && failure_.empty(); ++peer) {
    Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    if (!incoming.announced || incoming.here) continue;
    int done = 0;
    mpi_check(MPI_Test(&incoming.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) continue;
    incoming.here = moved = true;
    const auto mismatch = mail_->check(round_, peer, incoming.message());
    if (!mismatch) {
      ++here_;
    } else if (mismatch->rank >= 0) {
      fail(mismatch->rank, mismatch->why);
    }
  }
  return moved;
}

/// Whether the others have taken everything: what is left of a message may need this rank's help.
bool MpiCommunicator::sent() {
  int done = 0;
  mpi_check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
  if (done) sends_.clear();
  return done != 0;
}

Transfer MpiCommunicator::finish() {
  Lock lock(mutex_);
  while (!look()) {
    const double pause = pause_us_;
    lock.unlock();
    sleep_us(pause);
    lock.lock();
  }
  if (!failure_.empty()) throw Error(failure_);
  const Traffic traffic = mail_->traffic();
  mail_.reset();
  ++collectives_;
  return {traffic.sent, traffic.received, begin_us_, end_us_};
}

/// The ranks for which the collective waits.
std::string MpiCommunicator::missing() const {
  std::string absent, slow, behind;
  int absentees = 0;
  size_t message = 0;  // of sends_, which go to the peers in order
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    const Incoming& incoming = incoming_[static_cast<size_t>(peer)];
    int taken = 1;
    if (message < sends_.size())
      MPI_Request_get_status(sends_[message++], &taken, MPI_STATUS_IGNORE);
    if (incoming.here && taken) continue;
    std::string& list = incoming.here ? behind : incoming.heard || round_ > 0 ? slow : absent;
    list += concat(list.empty() ? "rank " : ", rank ", peer);
    absentees += &list == &absent;
  }
  if (!absent.empty())
    return absent + (absentees > 1 ? ", which have not come" : ", which has not come");
  if (!slow.empty()) return "data of " + slow;
  return behind + " to take this rank's data";
}

// ---------------------------------------------------------------- failures

/// Sends, and does not ask what becomes of it.
void MpiCommunicator::tell_others(const std::string& words, int tag) {
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): requests are freed, not waited for
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(words.data(), static_cast<int>(words.size()), MPI_BYTE, peer, tag, failures_,
              &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

void MpiCommunicator::fail(int rank, const std::string& cause) {
  if (!failure_.empty()) return;
  const std::string said = cause.empty() ? "no cause given" : cause;
  failure_ = size_ > 1 ? concat("rank ", rank, ": ", said) : said;
  if (failure_.size() > kLongestCause) failure_.resize(kLongestCause);
  tell_others(failure_, kFailureTag);
}

void MpiCommunicator::hear_failures() {
  if (!failure_.empty() || size_ == 1) return;
  int found = 0;
  MPI_Status status;
  mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, failures_, &found, &status), "MPI_Iprobe");
  if (!found) return;
  int bytes = 0;
  mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  std::string failure(static_cast<size_t>(bytes), ' ');
  mpi_check(MPI_Recv(failure.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kFailureTag, failures_,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  failure_ = failure;
}

std::string MpiCommunicator::hear_failure() {
  const Lock lock(mutex_);
  hear_failures();
  if (failure_.empty() && now_us() - peers_looked_us_ > kPeersUs) look_after_peers();
  return failure_;
}

bool MpiCommunicator::gone(int peer) const {
  return places_[static_cast<size_t>(peer)].deserted(places_[static_cast<size_t>(rank_)]);
}

/// A process that was killed says nothing.
void MpiCommunicator::look_after_peers() {
  peers_looked_us_ = now_us();
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer) || !gone(peer)) continue;
    hear_failures();  // or did it?
    const Place& place = places_[static_cast<size_t>(peer)];
    return fail(peer, concat("its process (", place.process, " on ", place.host.data(),
                             ") has ended, while rank ", rank_, " waited for it in ",
                             mail_ ? mail_->label().str() : "work of their devices"));
  }
}

/// Tells the others that this rank is about to end, and waits for them to be.
void MpiCommunicator::leave() {
  tell_others("", kLeavingTag);
  const double limit_us = now_us() + kLeaveS * 1e6;
  for (int peer = 0; peer < size_; ++peer) left(peer, (limit_us - now_us()) * 1e-6);
}

bool MpiCommunicator::left(int peer, double limit_s) {
  const double limit_us = now_us() + limit_s * 1e6;
  char& left = left_[static_cast<size_t>(peer)];
  while (is_peer(peer) && !left && !gone(peer)) {
    {
      const Lock lock(mutex_);
      int found = 0;
      MPI_Iprobe(peer, kLeavingTag, failures_, &found, MPI_STATUS_IGNORE);
      left = found != 0;
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
