#include "apps/speech/words.h"

#include <algorithm>

namespace wisp {

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (size_t begin = 0, end; (begin = line.find_first_not_of(kSpace, begin)) != line.npos;
       begin = end) {
    end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  return words;
}

}  // namespace wisp
