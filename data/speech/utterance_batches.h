// How an epoch of utterances is cut. Utterances of about the same length make a step, as all are
// padded to the longest of what a worker computes at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/examples.h"

namespace wisp {

struct UtteranceSteps {
  /// Of a step of all workers at most, padding counted; the shortest utterances, too few for a step
  /// of their own, join another. All epochs have the same steps, in another order. 0: Deal::batch
  /// utterances.
  int64_t frames = 0;
};

/// This rank's pieces of an epoch, as Examples::epoch(). `frames` tells the length of each
/// utterance, `most` what it is padded to at most in any epoch: what a budget counts. In training
/// steps of fixed numbers leave out others in each epoch, in the first not the longest. That goes
/// from short to long utterances (SortaGrad, Amodei et al. 2016), but for the longest step, which
/// comes first, so that memory is too small at once or never; later the steps are shuffled. A
/// step's utterances go, the longest first, to the piece that has least to compute, and lie there
/// in falling order. Otherwise an epoch goes from long to short. Throws Error, naming the data, for
/// too few utterances or a budget that is too small.
std::vector<Piece> cut_utterances(std::span<const int64_t> frames, std::span<const int64_t> most,
                                  const UtteranceSteps& steps, int64_t epoch, const Deal& deal,
                                  const std::string& name);

}  // namespace wisp
