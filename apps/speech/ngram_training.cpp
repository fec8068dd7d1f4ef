#include "apps/speech/ngram_training.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

constexpr size_t kLongestWord = 4096;  // ten of them fit in a line of an ARPA file

/// Calls visit(words) for each line with words.
template <class Visit>
void each_sentence(std::string_view text, const Visit& visit) {
  check_utf8(text);
  bool any = false;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    WISP_CHECK(line.find('\0') == line.npos, "line ", number, " has a byte of zero, expected text");
    std::vector<std::string_view> words = split_words(line);
    if (!words.empty() && words.back() == Vocabulary::kEnd) words.pop_back();  // the line's end
    for (std::string_view& word : words) {
      word = NgramModel::known_as(word);
      WISP_CHECK(word != NgramModel::kBegin && word != NgramModel::kEnd, "line ", number,
                 " has the word ", word,
                 ", which marks the beginning or end of a line; expected a text without it");
      WISP_CHECK(word.size() <= kLongestWord, "line ", number, " has a word of ", word.size(),
                 " bytes, expected ", kLongestWord, " at most");
    }
    if (words.empty()) continue;
    visit(words);
    any = true;
  }
  WISP_CHECK(any, "there is no word");
}

Vocabulary words_of_sentences(std::string_view text) {
  std::vector<std::string> words = {NgramModel::kUnknown, NgramModel::kBegin, NgramModel::kEnd};
  std::unordered_set<std::string_view> seen = {NgramModel::kUnknown};
  each_sentence(text, [&](const std::vector<std::string_view>& sentence) {
    for (const std::string_view word : sentence)
      if (seen.insert(word).second) words.emplace_back(word);
  });
  return Vocabulary(std::move(words));
}

/// The count of each n-gram of a trie.
using Counts = std::vector<int64_t>;

size_t at(int32_t number) { return static_cast<size_t>(number); }

/// Inserts the n-grams of a text, and returns the number of occurrences of each; <s> alone is not
/// counted.
Counts count_ngrams(std::string_view text, const Vocabulary& words, int32_t order,
                    NgramTrie& ngrams) {
  Counts counts(at(static_cast<int32_t>(ngrams.size())));
  const int32_t begin = 1 + words.number(NgramModel::kBegin);
  std::vector<int32_t> before, open;  // n-grams of 1, 2, … words that end at a word
  const auto add = [&](int32_t word) {
    open = {ngrams.insert(NgramTrie::kEmpty, word)};
    for (const int32_t context : before)
      if (std::ssize(open) < order) open.push_back(ngrams.insert(context, word));
    counts.resize(static_cast<size_t>(ngrams.size()));
    for (const int32_t ngram : open) ++counts[at(ngram)];
    before.swap(open);
  };
  each_sentence(text, [&](const std::vector<std::string_view>& sentence) {
    before = {begin};
    for (const std::string_view word : sentence) add(words.number(word));
    add(words.number(NgramModel::kEnd));
  });
  return counts;
}

/// Below the highest order, the number of different n-grams with one more word in front. N-grams
/// that begin with <s>, which nothing precedes, keep their occurrences.
Counts continuation_counts(const Counts& counts, const NgramTrie& ngrams, int32_t order,
                           int32_t begin) {
  Counts different(counts.size());
  std::vector<bool> begins(counts.size());  // whether an n-gram's first word is <s>
  begins[at(begin)] = true;
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram) {
    if (ngrams.length(ngram) == 1) continue;
    begins[at(ngram)] = begins[at(ngrams.context(ngram))];
    ++different[at(ngrams.suffix(ngram))];
  }
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram)
    if (begins[at(ngram)] || ngrams.length(ngram) == order)
      different[at(ngram)] = counts[at(ngram)];
  return different;
}

/// The discount for n-grams of each length; [0] is not used.
std::vector<double> discounts_of(const Counts& counts, const NgramTrie& ngrams, int32_t order) {
  std::vector<double> once(at(order) + 1), twice(at(order) + 1), discounts(at(order) + 1, 0.5);
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram) {
    if (counts[at(ngram)] == 1) ++once[at(ngrams.length(ngram))];
    if (counts[at(ngram)] == 2) ++twice[at(ngrams.length(ngram))];
  }
  for (size_t n = 1; n < discounts.size(); ++n)
    if (once[n] > 0.0) discounts[n] = once[n] / (once[n] + 2.0 * twice[n]);
  return discounts;
}

}  // namespace

NgramModel train_ngrams(std::string_view text, int32_t order) {
  WISP_CHECK(order >= 1, "n-grams of ", order, " words, expected 1 or more");
  Vocabulary words = words_of_sentences(text);
  NgramTrie ngrams(words.size());
  const int32_t begin = 1 + words.number(NgramModel::kBegin);
  const Counts occurrences = count_ngrams(text, words, order, ngrams);
  const Counts counts = continuation_counts(occurrences, ngrams, order, begin);
  const std::vector<double> discounts = discounts_of(counts, ngrams, order);

  Counts total(counts.size()), types(counts.size());  // after a context: all words, different words
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram) {
    total[at(ngrams.context(ngram))] += counts[at(ngram)];
    types[at(ngrams.context(ngram))] += counts[at(ngram)] > 0 ? 1 : 0;
  }
  // The probability that a context's discounts leave to shorter contexts.
  const auto left = [&](int32_t context) {
    if (total[at(context)] == 0) return 1.0;
    return discounts[at(ngrams.length(context)) + 1] * static_cast<double>(types[at(context)]) /
           static_cast<double>(total[at(context)]);
  };
  std::vector<double> probability(counts.size());
  std::vector<NgramWeights> weights(counts.size());
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram) {  // suffixes have smaller numbers
    const int32_t context = ngrams.context(ngram), n = ngrams.length(ngram);
    const double shorter =
        n > 1 ? probability[at(ngrams.suffix(ngram))] : 1.0 / static_cast<double>(words.size() - 1);
    const double kept = std::max(static_cast<double>(counts[at(ngram)]) - discounts[at(n)], 0.0);
    probability[at(ngram)] =
        kept / static_cast<double>(total[at(context)]) + left(context) * shorter;
    weights[at(ngram)] = {static_cast<float>(std::log10(probability[at(ngram)])),
                          static_cast<float>(std::log10(left(ngram)))};
  }
  weights[at(begin)].probability = NgramModel::kNever;
  return NgramModel(std::move(words), std::move(ngrams), std::move(weights));
}

NgramScore score_ngrams(const NgramModel& model, std::string_view text) {
  NgramScore score;
  const int32_t unknown = model.words().number(NgramModel::kUnknown);
  each_sentence(text, [&](const std::vector<std::string_view>& sentence) {
    ++score.sentences;
    int32_t state = model.begin();
    const auto add = [&](int32_t word) {
      const NgramModel::Step step = model.next(state, word);
      state = step.state;
      ++score.words;
      score.nats -= step.log_probability;
      if (word == unknown) {
        ++score.unknown;
      } else {
        score.known_nats -= step.log_probability;
      }
    };
    for (const std::string_view word : sentence) add(model.words().number(word));
    add(model.words().number(NgramModel::kEnd));
  });
  return score;
}

}  // namespace wisp
