#include "core/io/glob.h"

#include <vector>

namespace wisp {

bool glob(std::string_view pattern, std::string_view text) {
  std::vector<bool> fits(text.size() + 1);  // by length: whether the pattern so far matches
  fits[0] = true;
  for (const char c : pattern) {
    if (c == '*') {
      for (size_t end = 1; end < fits.size(); ++end) fits[end] = fits[end] || fits[end - 1];
      continue;
    }
    for (size_t end = text.size(); end > 0; --end)
      fits[end] = fits[end - 1] && (c == '?' || c == text[end - 1]);
    fits[0] = false;
  }
  return fits.back();
}

}  // namespace wisp
