// A manifest: a list of utterances in one file, for the user's own corpora. Any thread.
#pragma once

#include <string>
#include <vector>

#include "data/speech/utterance.h"

namespace wisp {

/// Whether a manifest's sounds need a text.
enum class Texts { needed, ignored };

/// Reads a manifest: a JSON object per line, or CSV (RFC 4180) whose first line names the columns.
/// The keys are `audio`, relative to the manifest's folder, and `text`. Optional keys are
/// `duration` in seconds, `speaker`, and `id`, by default the audio's name. Other keys are skipped.
/// Throws Error with file and line for another format, for a key that is missing, duplicate or of
/// another type, and for a zero byte. A duration must be positive, and the audio must exist.
std::vector<Utterance> read_manifest(const std::string& path, Texts texts = Texts::needed);

}  // namespace wisp
