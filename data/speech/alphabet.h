// The characters that a transcript is written in, and their numbers. Any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wisp {

/// Label 0 is the blank of connectionist temporal classification, label i the i-th character.
class Alphabet {
 public:
  /// The apostrophe, A to Z and the space, in the order of deepspeech.pytorch.
  static constexpr const char* kEnglish = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ ";
  static constexpr const char* kBlank = "_";

  /// `characters` in UTF-8, each once. Throws Error otherwise.
  explicit Alphabet(std::string_view characters = kEnglish);

  /// With the blank.
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  /// What each label is; of the blank kBlank.
  const std::vector<std::string>& names() const { return names_; }
  /// The label of the space; 0 if there is none.
  int32_t space() const;

  /// A text's labels: white space is one space, and none at both ends; a letter of ASCII that there
  /// is in the other case only is read as that. Throws Error naming each character that is not
  /// here.
  std::vector<int32_t> labels(std::string_view text) const;
  /// What labels() reads.
  std::string text(std::span<const int32_t> labels) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, int32_t, std::less<>> numbers_;
};

}  // namespace wisp
