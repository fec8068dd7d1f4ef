// The most probable texts of what a CTC model says, with and without a model of words. Any thread
// may call; nothing is shared among utterances.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/speech/ngram.h"
#include "apps/speech/transcription.h"

namespace wisp {

struct BeamOptions {
  static constexpr int64_t kWidest = int64_t{1} << 24;

  int64_t width = 64;  // prefixes that are kept in a frame
  int64_t best = 1;    // transcriptions that are returned, `width` at most
  /// Labels that may begin a new prefix in a frame: the most probable ones (0: all), and of these
  /// those with so high a probability.
  int64_t most_labels = 0;
  double least_probability = 0.0;
  const NgramModel* words = nullptr;  // outlives the search
  double alpha = 0.5;                 // weight of the words' natural log probability
  double beta = 1.0;                  // for each word
};

/// The best texts by
///   score = log P(text | frames) + alpha log P(words, </s>) + beta |words|,
/// best first; without a model of words the first term alone. P(text | frames) is the sum over all
/// paths that the beam did not lose; with a beam that holds every prefix it is exact. A word counts
/// where a space ends it and at the end of the utterance; words that the model does not have are
/// <unk>. Where words are and how confident is by the text's most probable path. An utterance
/// without frames is the empty text.
/// Throws Error for labels as check_labels(), frames of other labels, and options out of range.
/// Source: Graves 2012, section 7.5; Hannun et al. 2014, algorithm 1 (here: no word's score is
/// in the sums over paths, a prefix that comes back into the beam begins anew, and </s> is a word).
std::vector<Transcription> beam_search(const Frames& frames, const Labels& labels,
                                       const BeamOptions& options);

/// The same for many utterances, in their order, by so many threads at once.
std::vector<std::vector<Transcription>> beam_search(std::span<const Frames> utterances,
                                                    const Labels& labels,
                                                    const BeamOptions& options, int threads);

}  // namespace wisp
