// A search for the word weights of a beam search with the fewest errors. Called from one thread.
#pragma once

#include <functional>
#include <span>

#include "apps/inference/hear.h"

namespace wisp {

struct TriedWeights {
  double alpha = 0.0, beta = 0.0;  // as in BeamOptions
  ErrorCounts errors;
};

/// Decodes the utterances with each pair of alpha and beta, with `threads` threads, and passes
/// each result to `tell`. Returns the pair with the fewest word edits; ties go to the fewest
/// character edits, then to the first. Throws Error if there are no weights or no readable
/// utterance.
TriedWeights tune_decoding(std::span<const Heard> utterances, const Labels& labels,
                           BeamOptions beam, std::span<const double> alphas,
                           std::span<const double> betas, int threads,
                           const std::function<void(const TriedWeights&)>& tell);

}  // namespace wisp
