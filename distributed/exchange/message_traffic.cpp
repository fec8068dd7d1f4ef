#include "distributed/exchange/message_traffic.h"

#include <algorithm>

#include "core/base/error.h"
#include "distributed/communicator/collective.h"
#include "distributed/exchange/wire_header.h"

namespace wisp {

int outlet_count(const Message& message, int workers) {
  switch (message.kind) {
    case Collective::none:
      return 0;
    case Collective::all_to_all:
      return workers;
    case Collective::pair:
      return message.to >= 0 ? 1 : 0;
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::neighbours:
      return 1;
  }
  throw Error("outlet_count: not a collective");
}

bool hears(const Message& message, int rank, int from, std::span<const int> neighbours) {
  switch (message.kind) {
    case Collective::none:
    case Collective::all_reduce:
      return false;
    case Collective::all_gather:
    case Collective::all_to_all:
      return true;
    case Collective::pair:
      return message.from == from;
    case Collective::neighbours:
      return rank == from || std::binary_search(neighbours.begin(), neighbours.end(), from);
  }
  throw Error("hears: not a collective");
}

size_t outlet_for(const Message& message, int rank) {
  return message.kind == Collective::all_to_all ? static_cast<size_t>(rank) : 0;
}

bool has_header(Collective kind) {
  return kind != Collective::none && kind != Collective::all_reduce;
}

double bytes_on_wire(Collective kind, double bytes, int workers) {
  switch (kind) {
    case Collective::all_reduce:
      return reduction_steps(workers - 1).copies * bytes;
    case Collective::all_gather:
    case Collective::all_to_all:
      return direct_steps(workers - 1).copies * bytes;
    case Collective::pair:
    case Collective::neighbours:
      return direct_steps(1).copies * bytes;
    case Collective::none:
      return 0.0;
  }
  throw Error("bytes_on_wire: not a collective");
}

double bytes_on_wire(std::span<const Message> messages, int workers) {
  double sent = 0.0;
  for (const Message& message : messages) {
    if (message.kind == Collective::pair && message.to < 0) continue;
    const int64_t extra =
        (has_header(message.kind) ? kHeaderBytes : 0) + (message.variable ? 4 : 0);
    sent += bytes_on_wire(message.kind, static_cast<double>(message.bytes + extra), workers);
  }
  return sent;
}

bool is_more_than_dense(double bytes, int64_t raw_bytes, int workers) {
  return workers > 1 &&
         bytes > bytes_on_wire(Collective::all_reduce, static_cast<double>(raw_bytes), workers);
}

}  // namespace wisp
