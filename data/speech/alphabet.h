// An alphabet: the characters of transcripts and their numbers. Any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wisp {

/// Label 0 is the blank of connectionist temporal classification; label i is the i-th character.
class Alphabet {
 public:
  /// The apostrophe, A to Z and the space, in the order of deepspeech.pytorch.
  static constexpr const char* kEnglish = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ ";
  static constexpr const char* kBlank = "_";

  /// `characters` are UTF-8, without duplicates. Throws Error otherwise.
  explicit Alphabet(std::string_view characters = kEnglish);

  /// Number of labels, with the blank.
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  /// The character of each label; kBlank for the blank.
  const std::vector<std::string>& names() const { return names_; }

  /// The labels of a text. White space counts as one space, and is dropped at both ends. An ASCII
  /// letter that it has in the other case only is read as that. Throws Error that names each
  /// character outside the alphabet.
  std::vector<int32_t> labels(std::string_view text) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, int32_t, std::less<>> numbers_;
};

}  // namespace wisp
