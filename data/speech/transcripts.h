// Transcripts in LibriSpeech's layout: files *.trans.txt of lines "ID WORDS", and next to each file
// the audio of its lines. Any thread.
#pragma once

#include <string>

#include "data/speech/utterance.h"

namespace wisp {

/// All utterances below a folder, in the order of their files' paths and lines; links are followed.
/// Audio is ID.flac, ID.wav, ID.sph or ID.raw. The speaker is the first folder in the path to the
/// file. Notices are from files_below(), and about sounds without a transcript. Throws Error with
/// file and line for a line without words, and for an ID that is duplicate or has no audio; like
/// read_utf8() and files_below(); and for a folder without utterances.
FoundUtterances read_transcripts(const std::string& folder);

}  // namespace wisp
