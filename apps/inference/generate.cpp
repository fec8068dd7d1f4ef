#include "apps/inference/generate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "core/random.h"

namespace wisp {
namespace {

/// Uniform in [0, 1) with 53 bits, as many words have small probabilities.
double uniform(const Philox& philox, uint64_t index) {
  const Philox::Block block = philox.block(index);
  const uint64_t bits = uint64_t{block.word[0]} << 21 | block.word[1] >> 11;
  return std::ldexp(static_cast<double>(bits), -53);
}

/// The `count` most probable words, or all if `count` is 0; never Vocabulary::kUnknown.
std::vector<int32_t> candidates(const std::vector<double>& log_probabilities,
                                const Vocabulary& vocabulary, int64_t count) {
  const int32_t unknown = vocabulary.number(Vocabulary::kUnknown);
  std::vector<int32_t> words;
  for (int32_t word = 0; word < vocabulary.size(); ++word)
    if (word != unknown) words.push_back(word);
  if (count == 0 || count >= std::ssize(words)) return words;
  const auto rank = [&](int32_t word) {
    return std::pair(-log_probabilities[static_cast<size_t>(word)], word);
  };
  std::ranges::partial_sort(words, words.begin() + count, {}, rank);
  words.resize(static_cast<size_t>(count));
  return words;
}

/// Draws one of `words` by its probability at the temperature.
int32_t draw(const std::vector<int32_t>& words, const std::vector<double>& log_probabilities,
             double temperature, double uniform) {
  const auto of = [&](int32_t word) { return log_probabilities[static_cast<size_t>(word)]; };
  const double largest = of(std::ranges::max(words, {}, of));
  std::vector<double> sums;  // running sums of the words' weights
  double sum = 0.0;
  for (const int32_t word : words)
    sums.push_back(sum += std::exp((of(word) - largest) / temperature));
  const auto found = std::upper_bound(sums.begin(), sums.end(), uniform * sum) - sums.begin();
  return words[std::min(static_cast<size_t>(found), words.size() - 1)];
}

}  // namespace

void check(const GenerateOptions& options) {
  WISP_CHECK(options.tokens >= 1, "generate: ", options.tokens, " tokens, expected 1 or more");
  WISP_CHECK(std::isfinite(options.temperature) && options.temperature >= 0.0,
             "generate: a temperature of ", options.temperature, ", expected 0 or more");
  WISP_CHECK(options.top_k >= 0, "generate: top-k is ", options.top_k,
             ", expected 0 (all words) or more");
}

Prompt Prompt::of(std::string_view text, const Vocabulary& vocabulary) {
  naming("the prompt", [&] { check_utf8(text); });
  const size_t lines = text.rfind('\n') + 1;  // the bytes of its whole lines
  std::vector<std::string_view> words = words_of(text.substr(0, lines));
  std::ranges::copy(split_words(text.substr(lines)), std::back_inserter(words));
  Prompt prompt;
  bool known = words.empty();
  for (const std::string_view word : words) {
    prompt.tokens.push_back(vocabulary.number(word));
    if (vocabulary.has(word)) {
      known = true;
    } else if (std::ranges::count(prompt.unknown, word) == 0) {
      prompt.unknown.emplace_back(word);
    }
  }
  WISP_CHECK(known, "no word of the prompt (", text,
             ") is in the run's vocabulary, which is that of its training text");
  if (words.empty()) prompt.tokens.push_back(vocabulary.number(Vocabulary::kEnd));
  return prompt;
}

void generate(TextReader& reader, const Prompt& prompt, const GenerateOptions& options,
              const std::function<void(const DrawnWord&)>& tell) {
  check(options);
  WISP_CHECK(reader.vocabulary().size() > 1, "generate: the vocabulary has no word but ",
             Vocabulary::kUnknown);
  const bool greedy = options.temperature == 0.0;
  const Philox philox(options.seed, 0, 0);
  Tensor logits;
  for (const int32_t& token : prompt.tokens) logits = reader.read({&token, 1});
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::vector<double> log_probabilities = log_softmax(logits, 0);
    const std::vector<int32_t> words =
        candidates(log_probabilities, reader.vocabulary(), greedy ? 1 : options.top_k);
    const int32_t token = greedy ? words.front()
                                 : draw(words, log_probabilities, options.temperature,
                                        uniform(philox, static_cast<uint64_t>(i)));
    tell({token, log_probabilities[static_cast<size_t>(token)]});
    if (i + 1 < options.tokens) logits = reader.read({&token, 1});
  }
}

std::string WordsAsText::next(const std::string& word) {
  if (word == Vocabulary::kEnd) {
    in_line = false;
    return "\n";
  }
  return std::exchange(in_line, true) ? " " + word : word;
}

}  // namespace wisp
