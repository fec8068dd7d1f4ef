// The words of a text and their numbers. Any thread may ask.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wisp {

/// A word is what stands between white space; each line ends with the word "<eos>".
class Vocabulary {
 public:
  static constexpr const char* kUnknown = "<unk>";
  static constexpr const char* kEnd = "<eos>";

  /// The words of a text, those that occur most first, equal ones by their bytes; `most` of them,
  /// or all if that is 0, and kUnknown in any case, the last one if the text does not have it.
  /// Throws Error for a text without words, and as check_utf8().
  static Vocabulary of(std::string_view text, int64_t most = 0);
  /// Word i has number i. Throws Error for a word that is there twice, and without kUnknown.
  explicit Vocabulary(std::vector<std::string> words);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  bool has(std::string_view word) const { return numbers_.count(std::string(word)) != 0; }
  /// kUnknown's, if there is no such word.
  int32_t number(std::string_view word) const;
  std::vector<int32_t> numbers(std::string_view text) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
  int32_t unknown_ = 0;
};

/// What has numbers in a text, in its order; views of it, and of kEnd.
std::vector<std::string_view> words_of(std::string_view text);

}  // namespace wisp
