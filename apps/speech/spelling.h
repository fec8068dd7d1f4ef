// A notice for a model of words that a CTC model's alphabet cannot write. Any thread may call.
#pragma once

#include <string>

#include "apps/speech/ngram.h"
#include "apps/speech/transcription.h"

namespace wisp {

/// What people should know if the labels can write less than half of the model's words, as when
/// these are in small letters; else nothing. <s>, </s> and <unk> are no words here.
std::string spelling_notice(const NgramModel& model, const Labels& labels);

}  // namespace wisp
