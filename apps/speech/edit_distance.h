// How far texts that were heard are from those that were said: error rates of words and characters.
// Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wisp {

enum class Edit : uint8_t { correct, substitution, deletion, insertion };

/// The fewest edits that turn `reference` into `hypothesis`, in their order. Of several such
/// sequences the one that, from the end on, is correct or substitutes where it can, otherwise
/// deletes, otherwise inserts. Takes |reference| · |hypothesis| bytes. Source: Levenshtein 1966;
/// Wagner and Fischer 1974.
std::vector<Edit> align(std::span<const std::string_view> reference,
                        std::span<const std::string_view> hypothesis);

struct EditCounts {
  int64_t correct = 0, substitutions = 0, deletions = 0, insertions = 0;

  int64_t reference() const { return correct + substitutions + deletions; }
  int64_t edits() const { return substitutions + deletions + insertions; }
  /// Edits for each one of the reference, which may be above 1; NaN without reference and edits.
  double rate() const { return static_cast<double>(edits()) / static_cast<double>(reference()); }
  EditCounts& operator+=(const EditCounts& other);
};
EditCounts count_edits(std::span<const Edit> edits);

struct HeardUtterance {
  std::string speaker;
  std::string reference, hypothesis;  // UTF-8; words stand between white space
  std::string id;                     // may be empty
};

struct ErrorCounts {
  int64_t utterances = 0, wrong_utterances = 0;  // wrong: with an edit of words
  EditCounts words, characters;                  // a single space between words is a character

  ErrorCounts& operator+=(const ErrorCounts& other);
};

struct ErrorReport {
  ErrorCounts total;  // edits and references are summed up, then divided
  std::map<std::string, ErrorCounts> speakers;
};

ErrorCounts count_errors(std::string_view reference, std::string_view hypothesis);
ErrorReport count_errors(std::span<const HeardUtterance> utterances);

/// Three lines with a column for each edit of words, to be read in a fixed-width font:
///   REF: the cat sat ****
///   HYP: the bat *** down
///   ERR:     S   D   I
std::string alignment_text(std::string_view reference, std::string_view hypothesis);

}  // namespace wisp
