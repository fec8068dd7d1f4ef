#include "distributed/communicator/mpi_messages.h"

#include <algorithm>
#include <cstring>

#include "distributed/communicator/mail.h"

namespace wisp {
namespace {

// MPI shows a message when all of it is there, which for a message up to this size is soon. Of a
// longer one the receiver shall know earlier that its sender has come.
constexpr int64_t kLongBytes = 131072;
// A receiver's request for more would queue behind all data in the other direction, so MPI must
// send a piece unasked. Its header needs the rest of the limit. A receiver that is still in the
// round before may get pieces; MPI keeps them, at most a message of each peer.
constexpr int64_t kPieceBytes = MpiSession::kUnaskedBytes - 1024;
// Few pieces to another machine are under way at once, so that a failure's cause soon follows them.
constexpr size_t kFarPieces = 4;
constexpr int64_t kMostBytes = int64_t{1} << 40;  // of a message

bool is_done(MPI_Request& request) {
  int done = 0;
  mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace

MpiMessages::MpiMessages(const MpiPeers& peers)
    : peers_(peers),
      comm_(MpiSession::all()),
      incoming_(index(peers.size())),
      outgoing_(index(peers.size())) {}

std::byte* MpiMessages::Incoming::make_room(int64_t size) {
  known = true;
  bytes = size;
  if (memory.size() < static_cast<size_t>(size)) memory.resize(static_cast<size_t>(size));
  return memory.data();
}

void MpiMessages::start_round(int tag) {
  tag_ = tag;
  known_ = accepted_ = 0;
  for (Incoming& incoming : incoming_) {
    incoming.known = incoming.here = false;
    incoming.pieces.clear();
    incoming.arrived = 0;
  }
}

void MpiMessages::start_send(int peer, const void* data, int64_t bytes) {
  mpi_check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag_, comm_,
                      &outgoing_[index(peer)].sends.emplace_back()),
            "MPI_Isend");
}

void MpiMessages::send(int peer, ConstBytes message) {
  if (message.bytes <= kLongBytes) return start_send(peer, message.data, message.bytes);
  Outgoing& outgoing = outgoing_[index(peer)];
  outgoing.size = message.bytes;
  outgoing.rest = message;
  start_send(peer, &outgoing.size, sizeof outgoing.size);
}

bool MpiMessages::send_more() {
  bool all_sent = true;
  for (int peer = 0; peer < peers_.size(); ++peer) {
    Outgoing& to = outgoing_[index(peer)];
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

bool MpiMessages::receive(const std::function<bool(int)>& accept) {
  bool moved = !all_have_come() && hear();
  for (int peer = 0; peer < peers_.size(); ++peer) {
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
  ++known_;
  int64_t announced = 0;
  static_assert(sizeof announced < Mail::kLeastBytes);  // so that no short message is taken for it
  if (bytes == sizeof announced) {
    mpi_check(MPI_Mrecv(&announced, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    receive_pieces(status.MPI_SOURCE, announced);
    return true;
  }
  Incoming& incoming = incoming_[index(status.MPI_SOURCE)];
  mpi_check(MPI_Imrecv(incoming.make_room(bytes), bytes, MPI_BYTE, &message,
                       &incoming.pieces.emplace_back()),
            "MPI_Imrecv");
  return true;
}

/// Receives the long message that `peer` sends next. If its size cannot be, the message is the size
/// alone, which a Mail refuses.
void MpiMessages::receive_pieces(int peer, int64_t bytes) {
  Incoming& incoming = incoming_[index(peer)];
  if (bytes <= kLongBytes || bytes > kMostBytes) {
    std::memcpy(incoming.make_room(sizeof bytes), &bytes, sizeof bytes);
    return;
  }
  std::byte* const memory = incoming.make_room(bytes);
  for (int64_t at = 0; at < bytes; at += kPieceBytes)
    mpi_check(MPI_Irecv(memory + at, static_cast<int>(std::min(kPieceBytes, bytes - at)), MPI_BYTE,
                        peer, tag_, comm_, &incoming.pieces.emplace_back()),
              "MPI_Irecv");
}

}  // namespace wisp
