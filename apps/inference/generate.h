// Text generation: a trained run of words continues a prompt, word by word. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/inference/text_reader.h"

namespace wisp {

struct GenerateOptions {
  int64_t tokens = 100;      // words to draw; a line's end counts as one
  double temperature = 1.0;  // divisor of the logits; 0: always the most probable word
  int64_t top_k = 0;         // number of most probable words to draw from; 0: all
  uint64_t seed = 1;         // seed of the draws
};

/// Throws Error for options out of range.
void check(const GenerateOptions& options);

/// The beginning of a text, as tokens.
struct Prompt {
  std::vector<int32_t> tokens;       // only a line's end if the text has no words
  std::vector<std::string> unknown;  // words mapped to Vocabulary::kUnknown, each once

  /// Makes a line's end token of each line feed. Throws Error for a text that is not UTF-8, or
  /// whose words are all unknown.
  static Prompt of(std::string_view text, const Vocabulary& vocabulary);
};

struct DrawnWord {
  int32_t token = 0;
  double log_probability = 0.0;  // log probability by the model, before the options apply
};

/// Reads the prompt with a fresh reader, then draws words and passes each to `tell`. Never draws
/// Vocabulary::kUnknown, nor a class without a word. Draws are keyed by (seed, position), so the
/// same options give the same text. Throws Error for options out of range.
void generate(TextReader& reader, const Prompt& prompt, const GenerateOptions& options,
              const std::function<void(const DrawnWord&)>& tell);

/// A formatter of words as text: spaces between words, a line feed for a line's end.
struct WordsAsText {
  bool in_line = false;  // whether the text ends within a line

  /// The characters to print for the next word.
  std::string next(const std::string& word);
};

}  // namespace wisp
