// Reading and writing of n-gram models in the ARPA format of other programs (Paul and Baker 1992).
// Any thread.
#pragma once

#include <string>

#include "apps/speech/ngram.h"

namespace wisp {

/// Reads a model of any order. Text before the line \data\ and after \end\ is a comment. A missing
/// back-off weight is 0, and -inf is -99. <UNK> means <unk>, which gets 10^-99 in a model without
/// it. A byte order mark is skipped. Memory use follows the content, not the counts that the file
/// announces. Throws Error with path and line for an unreadable file, lines above 64 KiB, missing
/// or repeated sections, wrong counts, numbers that are not finite, probabilities above 1, and
/// models without <s> or </s>. Also throws for repeated n-grams, and for n-grams whose context is
/// missing or whose words are not among the 1-grams.
NgramModel read_arpa(const std::string& path);

/// Writes a file that read_arpa() reads as the same model. Throws Error as write_file().
void write_arpa(const NgramModel& model, const std::string& path);

}  // namespace wisp
