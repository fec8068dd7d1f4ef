// The cutting of an epoch of utterances into steps of about the same length, because each piece is
// padded to its longest utterance. Any thread may call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/examples.h"

namespace wisp {

/// This rank's pieces of an epoch, as in Examples::epoch(). `frames` holds the length of each
/// utterance in this epoch; `most` holds its largest padded length in any epoch.
///
/// `budget` is the most frames of a step of all workers, padding included; it counts the lengths in
/// `most`. A last step with too few utterances joins the step before it. All epochs have the same
/// steps, in another order. With budget 0 a step has Deal::batch utterances: each epoch of training
/// leaves out different ones; the first epoch never leaves out the longest.
///
/// The first epoch of training goes from short to long utterances (SortaGrad, Amodei et al. 2016).
/// Its first step, however, is the longest, so that memory runs out at once or never. Later epochs
/// shuffle the steps. An evaluation goes from long to short. Within a step the longest utterance is
/// dealt first, each to the piece with the fewest frames so far, and a piece is in falling order.
/// Throws Error that names the data for too few utterances or a budget that is too small.
std::vector<Piece> cut_utterances(std::span<const int64_t> frames, std::span<const int64_t> most,
                                  int64_t budget, int64_t epoch, const Deal& deal,
                                  const std::string& name);

}  // namespace wisp
