// The ranks that are to blame for a wait. A rank that does not come because it waits for others is
// not. Ranks are numbered as in the run. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace wisp {

/// The ranks that keep the waiting ranks among `absent` waiting, and those among `absent` that wait
/// for nobody; ascending. waits_for(rank) is empty if the rank waits for nobody. Returns `absent`
/// if all of them wait for each other.
std::vector<int> last_awaited(const std::vector<int>& absent,
                              const std::function<std::vector<int>(int rank)>& waits_for);

/// "rank 1, rank 2"
std::string names_of(const std::vector<int>& ranks);
/// "rank 1, rank 2, which have not come"
std::string absent_words(const std::vector<int>& ranks);

}  // namespace wisp
