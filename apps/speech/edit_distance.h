// Error rates of words and characters between reference and hypothesis texts, by edit distance. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/edit_distance.h"

namespace wisp {

/// The fewest edits that turn `reference` into `hypothesis`, in order. Ties are broken from the end
/// on, as edit_distance() does. Takes |reference| · |hypothesis| bytes.
std::vector<Edit> align(std::span<const std::string_view> reference,
                        std::span<const std::string_view> hypothesis);

struct EditCounts {
  int64_t correct = 0, substitutions = 0, deletions = 0, insertions = 0;

  int64_t reference() const { return correct + substitutions + deletions; }
  int64_t edits() const { return substitutions + deletions + insertions; }
  /// Edits per reference item, possibly above 1; NaN if there are neither references nor edits.
  double rate() const { return static_cast<double>(edits()) / static_cast<double>(reference()); }
  EditCounts& operator+=(const EditCounts& other);
};
EditCounts count_edits(std::span<const Edit> edits);

struct HeardUtterance {
  std::string speaker;
  std::string reference, hypothesis;  // UTF-8, words separated by white space
  std::string id;                     // may be empty
};

struct ErrorCounts {
  int64_t utterances = 0, wrong_utterances = 0;  // wrong: with a word edit
  EditCounts words, characters;                  // a space between words is a character

  ErrorCounts& operator+=(const ErrorCounts& other);
};

struct ErrorReport {
  ErrorCounts total;  // sums of edits over sums of references
  std::map<std::string, ErrorCounts> speakers;
};

ErrorCounts count_errors(std::string_view reference, std::string_view hypothesis);
ErrorReport count_errors(std::span<const HeardUtterance> utterances);

/// Three lines with a column per word edit, for a fixed-width font:
///   REF: the cat sat ****
///   HYP: the bat *** down
///   ERR:     S   D   I
std::string alignment_text(std::string_view reference, std::string_view hypothesis);

}  // namespace wisp
