#include "distributed/communicator/roster.h"

#include <algorithm>

#include "distributed/communicator/communicator.h"

namespace wisp {

Roster split_roster(Communicator& all, int colour, int latest) {
  struct Seat {
    int colour = 0, latest = 0;
  };
  const Seat own{colour, latest};
  std::vector<Seat> seats(all.roster().ranks.size());
  std::vector<Bytes> in;
  for (Seat& seat : seats) in.push_back({reinterpret_cast<std::byte*>(&seat), sizeof seat});
  const ConstBytes out{reinterpret_cast<const std::byte*>(&own), sizeof own};
  all.all_gather({&out, 1}, in)->wait();
  Roster roster;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    latest = std::max(latest, seats[rank].latest);
    if (seats[rank].colour != colour) continue;
    if (static_cast<int>(rank) == all.rank()) roster.rank = static_cast<int>(roster.ranks.size());
    roster.ranks.push_back(all.roster().ranks[rank]);
  }
  roster.generation = latest + 1;
  return roster;
}

}  // namespace wisp
