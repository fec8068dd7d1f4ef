#include "distributed/communicator/mpi_peers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/narrow.h"
#include "core/base/number.h"
#include "distributed/communicator/absent_ranks.h"

namespace wisp {
namespace {

constexpr double kLookUs = 20e3;        // interval of checks whether the other processes live
constexpr size_t kLongestCause = 1000;  // short enough to be sent without waiting for the receiver

}  // namespace

MpiPeers::MpiPeers() : words_(MpiSession::all()) {
  mpi_check(MPI_Comm_rank(words_, &rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(words_, &size_), "MPI_Comm_size");
  places_.resize(static_cast<size_t>(size_));
  left_.resize(places_.size());
  awaited_.resize(places_.size());
  const Place own = Place::own();
  mpi_check(
      MPI_Allgather(&own, sizeof(Place), MPI_BYTE, places_.data(), sizeof(Place), MPI_BYTE, words_),
      "MPI_Allgather");
}

int MpiPeers::neighbours(int end) const {
  int neighbours = 0;
  for (int rank = 0; rank < end; ++rank) neighbours += is_neighbour(rank);
  return neighbours;
}

int MpiPeers::cores() const {
  int count = 0;
  for (size_t word = 0; word < Place{}.cores.size(); ++word) {
    uint64_t bits = 0;
    for (int rank = 0; rank < size_; ++rank)
      if (is_neighbour(rank)) bits |= places_[static_cast<size_t>(rank)].cores[word];
    count += std::popcount(bits);
  }
  return count;
}

/// Sends without asking for the result.
void MpiPeers::tell_others(const std::string& words, int tag) {
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): requests are freed, not waited for
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(words.data(), narrow<int>(std::ssize(words), "bytes of a cause"), MPI_BYTE, peer, tag,
              words_, &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

void MpiPeers::fail(int rank, const std::string& cause) {
  if (!failure_.empty()) return;
  const std::string said = cause.empty() ? "no cause given" : cause;
  failure_ = size_ > 1 ? concat("rank ", rank, ": ", said) : said;
  if (failure_.size() > kLongestCause) failure_.resize(kLongestCause);
  tell_others(failure_, kFailureTag);
}

void MpiPeers::hear() {
  if (!failure_.empty() || size_ == 1) return;
  int found = 0;
  MPI_Status status;
  mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, words_, &found, &status), "MPI_Iprobe");
  if (!found) return;
  int bytes = 0;
  mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  std::string failure(static_cast<size_t>(bytes), ' ');
  mpi_check(MPI_Recv(failure.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kFailureTag, words_,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  failure_ = failure;
}

bool MpiPeers::gone(int peer) const {
  return places_[static_cast<size_t>(peer)].deserted(places_[static_cast<size_t>(rank_)]);
}

void MpiPeers::look_after(const std::function<std::string()>& what) {
  const double now = now_us();
  if (now - looked_us_ <= kLookUs) return;
  looked_us_ = now;
  hear_awaited();
  int peer = 0;
  while (peer < size_ && !(is_peer(peer) && gone(peer))) ++peer;
  if (peer == size_) return;
  hear();  // the peer may have announced its failure before
  const Place& place = places_[static_cast<size_t>(peer)];
  fail(peer, concat("its process (", place.process, " on ", place.host.data(),
                    ") has ended, while rank ", rank_, " waited for it in ", what()));
}

void MpiPeers::wait_for(const void* who, const std::vector<int>& ranks) {
  const auto known = waits_.find(who);
  if (ranks.empty() ? known == waits_.end() : known != waits_.end() && known->second == ranks)
    return;
  if (ranks.empty()) {
    waits_.erase(known);
  } else {
    waits_[who] = ranks;
  }
  tell_awaited();
}

void MpiPeers::tell_awaited() {
  std::erase_if(told_, [](Told& told) {
    int done = 0;
    mpi_check(MPI_Testall(narrow<int>(std::ssize(told.sends), "sends"), told.sends.data(), &done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done != 0;
  });
  std::string words;
  for (const auto& [who, ranks] : waits_)
    for (const int rank : ranks) words += bytes_of(rank);
  Told& told = told_.emplace_back(Told{std::move(words), {}});
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_peer(peer)) continue;
    mpi_check(MPI_Isend(told.words.data(), narrow<int>(std::ssize(told.words), "bytes of ranks"),
                        MPI_BYTE, peer, kWaitingTag, words_, &told.sends.emplace_back()),
              "MPI_Isend");
  }
}

/// Receives what others say about their waits.
void MpiPeers::hear_awaited() {
  for (;;) {
    int found = 0, bytes = 0;
    MPI_Status status;
    mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, kWaitingTag, words_, &found, &status), "MPI_Iprobe");
    if (!found) return;
    mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::vector<int>& ranks = awaited_[static_cast<size_t>(status.MPI_SOURCE)];
    ranks.resize((static_cast<size_t>(bytes) + sizeof(int) - 1) / sizeof(int));
    mpi_check(MPI_Recv(ranks.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kWaitingTag, words_,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    std::erase_if(ranks, [this](int rank) { return rank < 0 || rank >= size_; });
  }
}

bool MpiPeers::is_awaited() const {
  return std::ranges::any_of(
      awaited_, [this](const auto& ranks) { return std::ranges::count(ranks, rank_) > 0; });
}

std::vector<int> MpiPeers::last_awaited(const std::vector<int>& absent) {
  hear_awaited();
  return wisp::last_awaited(absent,
                            [this](int rank) { return awaited_[static_cast<size_t>(rank)]; });
}

bool MpiPeers::has_left(int peer) {
  char& left = left_[static_cast<size_t>(peer)];
  if (left) return true;
  int found = 0;
  MPI_Iprobe(peer, kLeavingTag, words_, &found, MPI_STATUS_IGNORE);
  left = found != 0;
  return left;
}

}  // namespace wisp
