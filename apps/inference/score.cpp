#include "apps/inference/score.h"

#include <algorithm>

#include "apps/inference/text_reader.h"
#include "core/base/error.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

/// The run's data.window; a default if its data has no windows, as any number does.
int64_t window_of(Config config) {
  int64_t window = 35;
  config.bind_least("data.window", window, 1, "words that are read at once");
  return window;
}

}  // namespace

Score score(Inference& model, std::string_view text) {
  check_utf8(text);
  const std::vector<std::string_view> words = words_of(text);
  const auto count = std::ssize(words) - std::ranges::count(words, Vocabulary::kEnd);
  WISP_CHECK(count > 0, "there is no word");
  WISP_CHECK(count > 1,
             "there is one word, expected two or more: a word is scored from the words before it");
  TextReader reader(model);
  const std::vector<int32_t> tokens = reader.vocabulary().numbers(text);
  const int32_t unknown = reader.vocabulary().number(Vocabulary::kUnknown);
  const size_t window = static_cast<size_t>(window_of(model.config()));
  Score score{.words = std::ssize(tokens) - 1,
              .characters = static_cast<int64_t>(count_characters(text))};
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += window) {
    const size_t positions = std::min(window, tokens.size() - 1 - begin);
    const Tensor logits = reader.read({tokens.data() + begin, positions});
    for (size_t i = 0; i < positions; ++i) {
      const int32_t target = tokens[begin + i + 1];
      const double nats =
          -log_softmax(logits, static_cast<int64_t>(i))[static_cast<size_t>(target)];
      score.nats += nats;
      if (target == unknown && words[begin + i + 1] != Vocabulary::kUnknown) {
        ++score.unknown;
      } else {
        score.known_nats += nats;
      }
    }
  }
  return score;
}

}  // namespace wisp
