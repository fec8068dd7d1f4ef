#include "distributed/communicator/host_communicator.h"

#include <algorithm>
#include <vector>

namespace wisp {

Roster HostCommunicator::split_roster(int colour, int latest) {
  struct Seat {
    int colour = 0, latest = 0;
  };
  const Seat own{colour, latest};
  std::vector<Seat> seats(roster().ranks.size());
  std::vector<Bytes> in;
  for (Seat& seat : seats) in.push_back({reinterpret_cast<std::byte*>(&seat), sizeof seat});
  const ConstBytes out{reinterpret_cast<const std::byte*>(&own), sizeof own};
  all_gather({&out, 1}, in)->wait();
  Roster group;
  int generation = 0;  // the latest of all ranks
  for (size_t index = 0; index < seats.size(); ++index) {
    generation = std::max(generation, seats[index].latest);
    if (seats[index].colour != colour) continue;
    if (static_cast<int>(index) == rank()) group.rank = static_cast<int>(group.ranks.size());
    group.ranks.push_back(roster().ranks[index]);
  }
  group.generation = generation + 1;
  return group;
}

}  // namespace wisp
