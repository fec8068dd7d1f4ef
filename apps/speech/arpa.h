// n-gram models in files as other programs write and read them ("ARPA", Paul and Baker 1992). One
// thread at a time.
#pragma once

#include <string>

#include "apps/speech/ngram.h"

namespace wisp {

/// Reads a model of any order. What stands before the line \data\ and behind \end\ is a comment; a
/// back-off weight that is missing is 0, -inf is -99; <UNK> is <unk>, which gets 10^-99 in a model
/// without it. A byte order mark is skipped.
/// Takes memory for what is there, not for what the file says is there. Throws Error with path and
/// line for a file that cannot be read, lines above 64 KiB, missing and repeated sections, other
/// counts than announced, numbers that are not finite, probabilities above 1, n-grams that are
/// there twice, whose context is not there or with words that are not among the 1-grams, and models
/// without <s> or </s>.
NgramModel read_arpa(const std::string& path);

/// Reading the file gives the same model. Throws Error as write_file().
void write_arpa(const NgramModel& model, const std::string& path);

}  // namespace wisp
