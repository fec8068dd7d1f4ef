// A list of utterances in one file, for corpora of one's own.
#pragma once

#include <string>
#include <vector>

#include "data/speech/utterance.h"

namespace wisp {

/// Whether a manifest's sounds have to say something.
enum class Texts { needed, ignored };

/// Either an object of JSON a line, or CSV (RFC 4180) under a line that names the columns. The keys
/// are `audio`, relative to the manifest's folder, and `text`; `duration` in seconds, `speaker` and
/// `id`, by default the audio's name, may be there, others are skipped. Throws Error naming file
/// and line for what is neither, a key that is missing, there twice or of another type, a byte of
/// zero, a duration that is not positive, and audio that does not exist.
std::vector<Utterance> read_manifest(const std::string& path, Texts texts = Texts::needed);

}  // namespace wisp
