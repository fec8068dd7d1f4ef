// Utterances as LibriSpeech has them: files *.trans.txt of lines "ID WORDS", and beside each the
// audio files of its lines.
#pragma once

#include <string>
#include <vector>

#include "data/speech/utterance.h"

namespace wisp {

/// All utterances below a folder, in the order of their files' paths and lines. Audio is ID.flac,
/// ID.wav, ID.sph or ID.raw. A speaker is the first folder on the way to the file. Throws Error,
/// naming file and line, for a line without words, an ID that is there twice or has no audio, text
/// that is no UTF-8, and for a folder without utterances.
std::vector<Utterance> read_transcripts(const std::string& folder);

}  // namespace wisp
