// An utterance, its sound file and its text; the lists that utterances are read from. Any thread.
#pragma once

#include <string>
#include <vector>

namespace wisp {

struct Utterance {
  std::string id;       // for people: "an426-fvap-b"
  std::string audio;    // path of the file
  std::string text;     // words of the transcript
  std::string speaker;  // empty if unknown
  double seconds = 0;   // 0: unknown, the file's header has it
};

struct FoundUtterances {
  std::vector<Utterance> utterances;
  std::vector<std::string> notices;  // for people: skipped files
};

/// Whether a manifest's sounds need a text.
enum class Texts { needed, ignored };

/// Reads a manifest, a list for the user's own corpora: a JSON object per line, or CSV (RFC 4180)
/// whose first line names the columns. The keys are `audio`, relative to the manifest's folder, and
/// `text`. Optional keys are `duration` in seconds, `speaker`, and `id`, by default the audio's
/// name. Other keys are skipped. Throws Error with file and line for another format, for a key that
/// is missing, duplicate or of another type, and for a zero byte. A duration must be positive, and
/// the audio must exist.
std::vector<Utterance> read_manifest(const std::string& path, Texts texts = Texts::needed);

/// Transcripts in LibriSpeech's layout: files *.trans.txt of lines "ID WORDS" beside the audio.
/// Reads all utterances below a folder, in the order of their files' paths and lines; links are
/// followed. Audio is ID.flac, ID.wav, ID.sph or ID.raw. The speaker is the first folder in the
/// path to the file. Notices are from files_below(), and about sounds without a transcript. Throws
/// Error with file and line for a line without words, and for an ID that is duplicate or has no
/// audio; like read_utf8() and files_below(); and for a folder without utterances.
FoundUtterances read_transcripts(const std::string& folder);

}  // namespace wisp
