// The outputs of a trained speech model on a data set: log probabilities of its labels, frame by
// frame, and their decoding. One thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/inference/inference.h"
#include "apps/setup/prepared.h"
#include "apps/speech/beam_search.h"
#include "apps/speech/edit_distance.h"

namespace wisp {

/// An utterance of a data set, with the model's output.
struct Heard {
  std::string id, speaker;               // may be empty
  std::string text;                      // transcript of the data set, in the labels' alphabet
  std::vector<float> log_probabilities;  // (T, labels), natural logs; empty if unreadable
};

/// Throws Error, which begins with `what`, unless the facts are those of a speech model.
void check_hears(const Facts& facts, const std::string& what);

/// Log softmax (rows, classes) of logits (rows, classes), natural. Throws Error if a result is not
/// finite.
std::vector<float> log_probabilities_of(const Tensor& logits);

/// Runs the model on the utterances of a split, in its order, and passes the name of each
/// unreadable one to `damaged`. Throws Error for a model that does not take sound, for data of
/// another alphabet and, naming the utterance, for an output that is not finite.
std::vector<Heard> hear(Inference& model, const Prepared& run, Split split,
                        const std::function<void(const std::string&)>& damaged);

/// Decodes each utterance, by the likeliest path or by beam search with `threads` threads, and
/// returns the texts beside the reference transcripts. Leaves out unreadable utterances.
std::vector<HeardUtterance> decode(std::span<const Heard> utterances, const Labels& labels,
                                   const std::optional<BeamOptions>& beam, int threads);

struct TriedWeights {
  double alpha = 0.0, beta = 0.0;  // as in BeamOptions
  ErrorCounts errors;
};

/// Searches for the word weights with the fewest errors. Decodes the utterances with each pair of
/// alpha and beta, with `threads` threads, and passes each result to `tell`. Returns the pair with
/// the fewest word edits; ties go to the fewest character edits, then to the first. Throws Error if
/// there are no weights or no readable utterance.
TriedWeights tune_decoding(std::span<const Heard> utterances, const Labels& labels,
                           BeamOptions beam, std::span<const double> alphas,
                           std::span<const double> betas, int threads,
                           const std::function<void(const TriedWeights&)>& tell);

}  // namespace wisp
