// A beam search for the most probable texts of a CTC model's output, with or without a model of
// words. Any thread; utterances share nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/speech/ngram.h"
#include "apps/speech/transcription.h"

namespace wisp {

struct BeamOptions {
  static constexpr int64_t kWidest = int64_t{1} << 24;

  int64_t width = 64;  // prefixes kept per frame
  int64_t best = 1;    // transcriptions to return, at most `width`
  /// Labels that may extend a prefix in a frame: the `most_labels` most probable ones (0: all) with
  /// at least this probability.
  int64_t most_labels = 0;
  double least_probability = 0.0;
  const NgramModel* words = nullptr;  // outlives the search
  double alpha = 0.5;                 // weight of words' natural log probability
  double beta = 1.0;                  // bonus per word
};

/// The best texts by
///   score = log P(text | frames) + alpha log P(words, </s>) + beta |words|,
/// best first; without a model of words the first term alone. P(text | frames) is the sum over all
/// paths that the beam kept; it is exact if the beam holds every prefix. A word counts when a space
/// or the utterance's end closes it; unknown words are <unk>. Positions and confidences of words
/// come from the text's most probable path. An utterance without frames gives the empty text.
/// Throws Error for labels as check_labels(), frames of other labels, and options out of range.
/// Source: Graves 2012, section 7.5; Hannun et al. 2014, algorithm 1. Differences: word scores stay
/// out of the sums over paths, a prefix that re-enters the beam starts anew, and </s> is scored.
std::vector<Transcription> beam_search(const Frames& frames, const Labels& labels,
                                       const BeamOptions& options);

/// Searches many utterances with `threads` threads; results are in their order.
std::vector<std::vector<Transcription>> beam_search(std::span<const Frames> utterances,
                                                    const Labels& labels,
                                                    const BeamOptions& options, int threads);

}  // namespace wisp
