#include "apps/speech/ngram.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace wisp {

NgramModel::NgramModel(Vocabulary words, NgramTrie ngrams, std::vector<NgramWeights> weights)
    : words_(std::move(words)), ngrams_(std::move(ngrams)), weights_(std::move(weights)) {
  WISP_CHECK(std::ssize(weights_) == ngrams_.size(), "an n-gram model has ", weights_.size(),
             " weights, expected ", ngrams_.size());
  WISP_CHECK(ngrams_.size() > words_.size(), "an n-gram model has ", ngrams_.size() - 1,
             " n-grams, expected one or more for each of ", words_.size(), " words");
  for (const char* needed : {kBegin, kEnd})
    WISP_CHECK(words_.has(needed), "an n-gram model has no word ", needed);
  for (int32_t ngram = 0; ngram < ngrams_.size(); ++ngram) {
    const auto& [probability, back_off] = this->weights(ngram);
    WISP_CHECK(std::isfinite(probability) && std::isfinite(back_off), "n-gram ", ngram,
               " has the weights ", probability, " and ", back_off, ", expected finite ones");
    order_ = std::max(order_, ngrams_.length(ngram));
  }
  begin_ = order_ > 1 ? 1 + words_.number(kBegin) : NgramTrie::kEmpty;
  end_ = words_.number(kEnd);
}

std::vector<int64_t> NgramModel::counts() const {
  std::vector<int64_t> counts(static_cast<size_t>(order_));
  for (int32_t ngram = 1; ngram < ngrams_.size(); ++ngram)
    ++counts[static_cast<size_t>(ngrams_.length(ngram)) - 1];
  return counts;
}

}  // namespace wisp
