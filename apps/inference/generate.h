// A text that a trained run goes on with, word by word.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/inference/text_reader.h"

namespace wisp {

struct GenerateOptions {
  int64_t tokens = 100;      // to be drawn; a line's end is one
  double temperature = 1.0;  // logits are divided by it; 0: always the most probable word
  int64_t top_k = 0;         // words that are drawn from, the most probable ones; 0: all
  uint64_t seed = 1;         // of what is drawn
};

/// Throws Error for options out of range.
void check(const GenerateOptions& options);

/// A text to go on with.
struct Prompt {
  std::vector<int32_t> tokens;       // a line's end alone if there are no words
  std::vector<std::string> unknown;  // words that became Vocabulary::kUnknown, each once

  /// A line's end is a token where the text has a line feed. Throws Error for a text that is no
  /// UTF-8, and for one of unknown words alone.
  static Prompt of(std::string_view text, const Vocabulary& vocabulary);
};

struct DrawnWord {
  int32_t token = 0;
  double log_probability = 0.0;  // that the model gives it, whatever the options
};

/// Lets the reader, which has read nothing yet, read the prompt and what is drawn, and tells each
/// word. Never draws Vocabulary::kUnknown, nor a class that has no word. The draws are keyed by
/// (seed, position), so the same options give the same text. Throws Error for options out of range.
void generate(TextReader& reader, const Prompt& prompt, const GenerateOptions& options,
              const std::function<void(const DrawnWord&)>& tell);

/// Puts words together to what people read: spaces between them, a line feed for a line's end.
class WordsAsText {
 public:
  /// What to print for the next word.
  std::string next(const std::string& word);
  bool in_line() const { return in_line_; }

 private:
  bool in_line_ = false;
};

}  // namespace wisp
