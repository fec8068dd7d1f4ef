#include "distributed/communicator/mpi_messages.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/narrow.h"
#include "distributed/communicator/mail.h"

namespace wisp {
namespace {

// Most bytes of a short message. MPI shows a message when all of it is there. The size that goes
// before a long message tells its receiver sooner that the sender has come.
constexpr int64_t kShortBytes = 131072;
// A piece to another machine is as long as MPI sends unasked, less MPI's header. A receiver that is
// still in the round before may get pieces. MPI keeps them, at most one message of each peer.
constexpr int64_t kFarPiece = MpiSession::kUnaskedBytes - 1024;
// A piece within a machine is longer, because each costs a look of sender and receiver.
constexpr int64_t kNearPiece = 4 << 20;
// Few pieces to a peer are under way at once, because news of a failure waits behind them.
constexpr size_t kPiecesUnderWay = 4;

bool is_done(MPI_Request& request) {
  int done = 0;
  mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace

MpiMessages::MpiMessages(const MpiPeers& peers, MPI_Comm comm, Roster group)
    : peers_(peers),
      comm_(comm),
      group_(std::move(group)),
      incoming_(group_.ranks.size()),
      outgoing_(group_.ranks.size()) {}

/// The group's rank of a rank of the run.
int MpiMessages::from_run(int rank) const {
  const auto found = std::lower_bound(group_.ranks.begin(), group_.ranks.end(), rank);
  WISP_CHECK(found != group_.ranks.end() && *found == rank, "rank ", rank,
             " sent a message to a group of generation ", group_.generation,
             ", to which it does not belong");
  return static_cast<int>(found - group_.ranks.begin());
}

std::byte* MpiMessages::Incoming::make_room(int64_t size) {
  known = true;
  bytes = size;
  if (memory.size() < static_cast<size_t>(size)) memory.resize(static_cast<size_t>(size));
  return memory.data();
}

void MpiMessages::start_round(int64_t round) {
  tag_ = message_tag(group_.generation, round);
  all_came_us_ = now_us();
  known_ = accepted_ = 0;
  for (Incoming& incoming : incoming_) {
    incoming.known = incoming.here = false;
    incoming.pieces.clear();
    incoming.arrived = 0;
  }
}

/// Most bytes of a piece to or from `peer`.
int64_t MpiMessages::piece_bytes(int peer) const {
  return peers_.is_neighbour(in_run(peer)) ? kNearPiece : kFarPiece;
}

void MpiMessages::start_send(int peer, const void* data, int64_t bytes) {
  mpi_check(MPI_Isend(data, narrow<int>(bytes, "bytes of a piece"), MPI_BYTE, in_run(peer), tag_,
                      comm_, &outgoing_[index(peer)].sends.emplace_back()),
            "MPI_Isend");
}

void MpiMessages::send(int peer, ConstBytes message) {
  if (message.bytes <= kShortBytes) return start_send(peer, message.data, message.bytes);
  Outgoing& outgoing = outgoing_[index(peer)];
  outgoing.size = message.bytes;
  outgoing.rest = message;
  start_send(peer, &outgoing.size, sizeof outgoing.size);
}

bool MpiMessages::send_more() {
  bool moved = false;
  for (int peer = 0; peer < size(); ++peer) {
    Outgoing& to = outgoing_[index(peer)];
    for (; !to.sends.empty() && is_done(to.sends.front()); moved = true)
      to.sends.erase(to.sends.begin());
    for (; to.rest.bytes > 0 && to.sends.size() < kPiecesUnderWay; moved = true) {
      const int64_t piece = std::min(piece_bytes(peer), to.rest.bytes);
      start_send(peer, to.rest.data, piece);
      to.rest = {to.rest.data + piece, to.rest.bytes - piece};
    }
  }
  return moved;
}

bool MpiMessages::receive(const std::function<bool(int)>& accept) {
  bool moved = known_ < others() && hear();
  for (int peer = 0; peer < size(); ++peer) {
    Incoming& incoming = incoming_[index(peer)];
    if (!incoming.known || incoming.here) continue;
    while (incoming.arrived < incoming.pieces.size() &&
           is_done(incoming.pieces[incoming.arrived])) {
      ++incoming.arrived;
      moved = true;
    }
    if (incoming.arrived < incoming.pieces.size()) continue;
    incoming.here = true;
    accepted_ += accept(peer);
  }
  return moved;
}

/// Begins to receive the message of a peer that has come; returns false if none has.
bool MpiMessages::hear() {
  int found = 0, bytes = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpi_check(MPI_Improbe(MPI_ANY_SOURCE, tag_, comm_, &found, &message, &status), "MPI_Improbe");
  if (!found) return false;
  mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  const int peer = from_run(status.MPI_SOURCE);
  WISP_CHECK(bytes != MPI_UNDEFINED, "rank ", in_run(peer),
             " sent more than 2 GiB in one piece; do all ranks run the same program?");
  if (++known_ == others()) all_came_us_ = now_us();
  int64_t announced = 0;
  static_assert(sizeof announced < Mail::kLeastBytes);  // so that no short message is taken for it
  if (bytes == sizeof announced) {
    mpi_check(MPI_Mrecv(&announced, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    receive_pieces(peer, announced);
    return true;
  }
  Incoming& incoming = incoming_[index(peer)];
  mpi_check(MPI_Imrecv(incoming.make_room(bytes), bytes, MPI_BYTE, &message,
                       &incoming.pieces.emplace_back()),
            "MPI_Imrecv");
  return true;
}

/// Receives the long message that `peer` sends next.
void MpiMessages::receive_pieces(int peer, int64_t bytes) {
  WISP_CHECK(bytes > kShortBytes, "rank ", in_run(peer), " announces a long message of ", bytes,
             " bytes; do all ranks run the same program?");
  Incoming& incoming = incoming_[index(peer)];
  std::byte* const memory = incoming.make_room(bytes);
  const int64_t most = piece_bytes(peer);
  for (int64_t at = 0; at < bytes; at += most)
    mpi_check(MPI_Irecv(memory + at, narrow<int>(std::min(most, bytes - at), "bytes of a piece"),
                        MPI_BYTE, in_run(peer), tag_, comm_, &incoming.pieces.emplace_back()),
              "MPI_Irecv");
}

}  // namespace wisp
