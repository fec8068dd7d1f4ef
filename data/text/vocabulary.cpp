#include "data/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

/// Calls visit(word) for each word of a text, and visit(kEnd) at each line end, unless the line's
/// last word is that already.
template <class Visit>
void each_word(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::vector<std::string_view> words = split_words(take_line(text));
    for (const std::string_view word : words) visit(word);
    if (words.empty() || words.back() != Vocabulary::kEnd)
      visit(std::string_view(Vocabulary::kEnd));
  }
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  each_word(text, [&](std::string_view word) { words.push_back(word); });
  return words;
}

WrittenEnds written_ends(std::string_view text) {
  WrittenEnds ends;
  if (text.find(Vocabulary::kEnd) == text.npos) return ends;
  while (!text.empty()) {
    const std::vector<std::string_view> words = split_words(take_line(text));
    if (words.empty()) continue;
    const bool at_end = words.back() == Vocabulary::kEnd;
    ends.at_line_ends += at_end;
    ends.elsewhere += std::ranges::count(words, Vocabulary::kEnd) - at_end;
  }
  return ends;
}

std::string_view closing_mark(std::string_view text) {
  std::string_view mark;
  while (!text.empty()) {
    const std::vector<std::string_view> words = split_words(take_line(text));
    if (words.empty()) continue;
    const std::string_view word = words.back();
    const bool is_mark = word.size() > 2 && ((word.front() == '<' && word.back() == '>') ||
                                             (word.front() == '[' && word.back() == ']'));
    if (!is_mark || words.size() == 1 || word == Vocabulary::kEnd) return {};
    if (!mark.empty() && word != mark) return {};
    mark = word;
  }
  return mark;
}

Vocabulary Vocabulary::of(std::string_view text, int64_t most) {
  WISP_CHECK(most >= 0, "a vocabulary of ", most, " words, expected 0 (all) or more");
  check_utf8(text);
  std::unordered_map<std::string_view, int64_t> counts;
  each_word(text, [&](std::string_view word) { ++counts[word]; });
  WISP_CHECK(counts.size() > counts.count(kEnd), "there is no word");
  std::vector<std::pair<std::string_view, int64_t>> order(counts.begin(), counts.end());
  std::ranges::sort(order, {},
                    [](const auto& word) { return std::pair(-word.second, word.first); });
  if (most > 0 && std::ssize(order) > most) order.resize(static_cast<size_t>(most));
  std::vector<std::string> kept;
  for (const auto& [word, count] : order) kept.emplace_back(word);
  if (std::ranges::count(kept, kUnknown) == 0) kept.emplace_back(kUnknown);
  return Vocabulary(std::move(kept));
}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i) {
    const bool added = numbers_.emplace(words_[i], static_cast<int32_t>(i)).second;
    WISP_CHECK(added, "a vocabulary has the word '", words_[i], "' twice");
  }
  const auto unknown = numbers_.find(kUnknown);
  WISP_CHECK(unknown != numbers_.end(), "a vocabulary of ", words_.size(), " words has no ",
             kUnknown);
  unknown_ = unknown->second;
}

int32_t Vocabulary::number(std::string_view word) const {
  const auto found = numbers_.find(std::string(word));
  return found == numbers_.end() ? unknown_ : found->second;
}

std::vector<int32_t> Vocabulary::numbers(std::string_view text) const {
  std::vector<int32_t> numbers;
  each_word(text, [&](std::string_view word) { numbers.push_back(number(word)); });
  return numbers;
}

}  // namespace wisp
