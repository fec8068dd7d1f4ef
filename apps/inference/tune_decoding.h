// Which weights of words find the fewest errors.
#pragma once

#include <functional>
#include <span>

#include "apps/inference/hear.h"

namespace wisp {

struct TriedWeights {
  double alpha = 0.0, beta = 0.0;  // BeamOptions'
  ErrorCounts errors;
};

/// Decodes the utterances with each alpha and each beta, by so many threads at once, and tells of
/// each pair. Returns that of the fewest edits of words, of equals the fewest of characters, then
/// the first. Throws Error without weights, and if no utterance could be read.
TriedWeights tune_decoding(std::span<const Heard> utterances, const Labels& labels,
                           BeamOptions beam, std::span<const double> alphas,
                           std::span<const double> betas, int threads,
                           const std::function<void(const TriedWeights&)>& tell);

}  // namespace wisp
