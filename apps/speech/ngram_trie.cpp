#include "apps/speech/ngram_trie.h"

#include <limits>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

}  // namespace

NgramTrie::NgramTrie(int64_t words)
    : words_(words), nodes_{{kEmpty, kNone, kEmpty, 0}}, slots_(16) {
  WISP_CHECK(words < kMost, words, " words in an n-gram model, expected less than ", kMost);
  nodes_.reserve(static_cast<size_t>(words) + 1);
  for (int32_t word = 0; word < words; ++word) nodes_.push_back({kEmpty, word, kEmpty, 1});
}

int32_t NgramTrie::insert(int32_t context, int32_t word) {
  if (const int32_t found = find(context, word); found != kNone) return found;
  WISP_CHECK(size() < kMost, "more than ", kMost - 1, " n-grams, expected less");
  int32_t suffix = kNone;
  for (int32_t shorter = context; suffix == kNone;) {
    shorter = node(shorter).suffix;
    suffix = find(shorter, word);
  }
  const auto number = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({context, word, suffix, node(context).length + 1});
  slots_[slot_of(context, word)] = number;
  if (2 * (size() - 1 - words_) > static_cast<int64_t>(slots_.size())) grow();
  return number;
}

void NgramTrie::grow() {
  slots_.assign(2 * slots_.size(), kEmpty);
  for (auto number = static_cast<int32_t>(words_ + 1); number < size(); ++number)
    slots_[slot_of(node(number).context, node(number).word)] = number;
}

std::vector<int32_t> NgramTrie::words(int32_t ngram) const {
  std::vector<int32_t> words(static_cast<size_t>(length(ngram)));
  for (auto word = words.rbegin(); word != words.rend(); ++word, ngram = context(ngram))
    *word = node(ngram).word;
  return words;
}

}  // namespace wisp
