#include "apps/inference/tune_decoding.h"

#include <optional>
#include <utility>

#include "core/base/error.h"

namespace wisp {
namespace {

bool better(const ErrorCounts& a, const ErrorCounts& b) {
  return std::pair(a.words.edits(), a.characters.edits()) <
         std::pair(b.words.edits(), b.characters.edits());
}

}  // namespace

TriedWeights tune_decoding(std::span<const Heard> utterances, const Labels& labels,
                           BeamOptions beam, std::span<const double> alphas,
                           std::span<const double> betas, int threads,
                           const std::function<void(const TriedWeights&)>& tell) {
  WISP_CHECK(!alphas.empty() && !betas.empty(), "tune: no weights, expected one or more of each");
  std::optional<TriedWeights> best;
  for (const double alpha : alphas) {
    for (const double beta : betas) {
      beam.alpha = alpha;
      beam.beta = beta;
      const TriedWeights tried{alpha, beta,
                               count_errors(decode(utterances, labels, beam, threads)).total};
      WISP_CHECK(tried.errors.utterances > 0, "tune: no utterance, expected one or more");
      tell(tried);
      if (!best || better(tried.errors, best->errors)) best = tried;
    }
  }
  return *best;
}

}  // namespace wisp
