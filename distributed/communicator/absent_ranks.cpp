#include "distributed/communicator/absent_ranks.h"

#include <set>

#include "core/base/error.h"

namespace wisp {

std::vector<int> last_awaited(const std::vector<int>& absent,
                              const std::function<std::vector<int>(int rank)>& waits_for) {
  std::set<int> seen, last;
  std::vector<int> open = absent;
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    const std::vector<int> awaited = waits_for(rank);
    if (awaited.empty()) last.insert(rank);
    open.insert(open.end(), awaited.begin(), awaited.end());
  }
  return last.empty() ? absent : std::vector<int>(last.begin(), last.end());
}

std::string names_of(const std::vector<int>& ranks) {
  std::string names;
  for (const int rank : ranks) names += concat(names.empty() ? "rank " : ", rank ", rank);
  return names;
}

std::string absent_words(const std::vector<int>& ranks) {
  return names_of(ranks) + (ranks.size() > 1 ? ", which have" : ", which has") + " not come";
}

}  // namespace wisp
