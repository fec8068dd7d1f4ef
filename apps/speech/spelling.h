// A notice for a model of words that a CTC model's alphabet cannot spell. Any thread.
#pragma once

#include <string>

#include "apps/speech/ngram.h"
#include "apps/speech/transcription.h"

namespace wisp {

/// Returns a notice if the labels can spell less than half of the model's words, for example
/// because of lower case; else an empty text. <s>, </s> and <unk> do not count.
std::string spelling_notice(const NgramModel& model, const Labels& labels);

}  // namespace wisp
