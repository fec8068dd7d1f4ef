// The ranks that a communicator connects: all of a run, or a group of them. A value; any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace wisp {

struct Roster {
  std::vector<int> ranks;  // the ranks' numbers in the run, ascending
  int rank = 0;            // this rank's index among them
  int generation = 0;      // 0: all ranks of the run; each split makes the next generation

  /// This rank's number in the run.
  int in_run() const { return ranks[static_cast<size_t>(rank)]; }
};

/// All ranks of a run, as `rank` sees them.
inline Roster whole_roster(int rank, int size) {
  Roster roster;
  roster.rank = rank;
  for (int other = 0; other < size; ++other) roster.ranks.push_back(other);
  return roster;
}

class Communicator;

/// The ranks of `all` that pass this rank's colour. All ranks of `all` call it together. `latest`
/// is the latest generation that this rank is in. The result's is later, and the same for all.
Roster split_roster(Communicator& all, int colour, int latest);

}  // namespace wisp
