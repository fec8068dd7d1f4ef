// A vocabulary: the words of a text and their numbers. Any thread may ask.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wisp {

/// Words are separated by white space. Each line ends with the word "<eos>": one that is written
/// out at a line's end is that word.
class Vocabulary {
 public:
  static constexpr const char* kUnknown = "<unk>";
  static constexpr const char* kEnd = "<eos>";

  /// The `most` most frequent words of a text, or all words if `most` is 0. Words are sorted by
  /// falling frequency, then by their bytes. kUnknown is added at the end if the words lack it.
  /// Throws Error for a text without words, and like check_utf8().
  static Vocabulary of(std::string_view text, int64_t most = 0);
  /// Word i has number i. Throws Error for a duplicate word, or if kUnknown is missing.
  explicit Vocabulary(std::vector<std::string> words);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  bool has(std::string_view word) const { return numbers_.count(std::string(word)) != 0; }
  /// The number of a word, or of kUnknown if the word is not in the vocabulary.
  int32_t number(std::string_view word) const;
  std::vector<int32_t> numbers(std::string_view text) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
  int32_t unknown_ = 0;
};

/// The words of a text in order, with kEnd for each line end, as views of `text` or of kEnd.
std::vector<std::string_view> words_of(std::string_view text);

/// How often kEnd is written out in a text: as the last word of a line, and elsewhere.
struct WrittenEnds {
  int64_t at_line_ends = 0, elsewhere = 0;
};
WrittenEnds written_ends(std::string_view text);

/// The word in angle or square brackets, other than kEnd, that closes all lines with words: "</s>".
/// Empty if there is none.
std::string_view closing_mark(std::string_view text);

}  // namespace wisp
