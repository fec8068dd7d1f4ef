// What a trained model of speech hears: log probabilities of its labels, frame by frame, which may
// then be decoded in one way or another.
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

/// An utterance of a data set.
struct Heard {
  std::string id, speaker;               // may be empty
  std::string text;                      // that was said, in the labels
  std::vector<float> log_probabilities;  // (T, labels), natural; empty if it could not be read
};

/// Throws Error, naming `what` was asked for, unless the facts are those of a model of speech.
void check_hears(const Facts& facts, const std::string& what);

/// Natural logs (rows, classes) of the softmax of each row of logits (rows, classes). Throws Error
/// if they are not finite.
std::vector<float> log_probabilities_of(const Tensor& logits);

/// The utterances of a split, in its order, one that cannot be read told to `damaged`. Throws Error
/// for a model that does not hear sound, data of another alphabet, and, naming the utterance, an
/// output that is not finite.
std::vector<Heard> hear(Inference& model, const Prepared& run, Split split,
                        const std::function<void(const std::string&)>& damaged);

/// The text of the likeliest path of each utterance, or what a beam search finds, by so many
/// threads at once, beside what was said. What could not be read is left out.
std::vector<HeardUtterance> decode(std::span<const Heard> utterances, const Labels& labels,
                                   const std::optional<BeamOptions>& beam, int threads);

}  // namespace wisp
