// Utterances as LibriSpeech has them: files *.trans.txt of lines "ID WORDS", and beside each the
// audio files of its lines.
#pragma once

#include <string>

#include "data/speech/utterance.h"

namespace wisp {

/// All utterances below a folder, links followed, in the order of their files' paths and lines.
/// Audio is ID.flac, ID.wav, ID.sph or ID.raw. A speaker is the first folder on the way to the
/// file. Notices are those of files_below(), and of sounds that no transcript has. Throws Error,
/// naming file and line, for a line without words, an ID that is there twice or has no audio, as
/// read_utf8() and files_below(), and for a folder without utterances.
FoundUtterances read_transcripts(const std::string& folder);

}  // namespace wisp
