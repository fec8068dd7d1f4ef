#include "data/absent_classes.h"

#include <fmt/format.h>

#include <algorithm>

namespace wisp {

void note_absent(std::vector<std::string>& notices, const std::string& where,
                 const std::string& kind, const std::string& sample, const std::vector<bool>& seen,
                 const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 5;
  std::vector<std::string> absent;
  for (size_t c = 0; c < seen.size(); ++c)
    if (!seen[c]) absent.push_back(c < names.size() ? names[c] : std::to_string(c));
  if (absent.empty()) return;
  const auto end =
      absent.begin() + static_cast<std::ptrdiff_t>(std::min(absent.size(), kMostNames));
  notices.push_back(fmt::format("{}: {} of {} {} have no {}: {}{}", where, absent.size(),
                                seen.size(), kind, sample, fmt::join(absent.begin(), end, ", "),
                                absent.size() > kMostNames ? ", …" : ""));
}

}  // namespace wisp
