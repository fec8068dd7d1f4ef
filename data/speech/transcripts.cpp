#include "data/speech/transcripts.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "core/io/input_file.h"
#include "core/io/utf8.h"
#include "data/files_below.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSounds[] = {".flac", ".wav", ".sph", ".raw"};

std::string audio_of(const fs::path& folder, const std::string& id, const std::string& where) {
  for (const char* ending : kSounds) {
    const std::string path = (folder / (id + ending)).string();
    if (fs::exists(path)) return path;
  }
  throw Error(concat(where, ": there is no ", id, ".flac, .wav, .sph or .raw beside it"));
}

}  // namespace

FoundUtterances read_transcripts(const std::string& folder) {
  FilesBelow below = files_below(folder);
  FoundUtterances found;
  std::set<std::string> ids;
  std::set<fs::path> heard;  // paths of audio without extensions
  for (const fs::path& file : below.files) {
    if (!file.string().ends_with(".trans.txt")) continue;
    const fs::path relative = file.lexically_relative(folder);  // keeps links' names
    const std::string speaker = relative.has_parent_path() ? relative.begin()->string() : "";
    const std::string whole = naming(file.string(), [&] { return read_utf8(file.string()); });
    std::string_view text = whole;
    for (int64_t number = 1; !text.empty(); ++number) {
      const std::string_view line = take_line(text);
      const std::string where = concat(file.string(), ":", number);
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      const size_t gap = line.find(' ');
      WISP_CHECK(gap != line.npos && line.find_first_not_of(" \t\r", gap) != line.npos, where,
                 ": expected \"ID WORDS\"");
      const std::string id(line.substr(0, gap));
      WISP_CHECK(ids.insert(id).second, where, ": ", id, " is there twice");
      heard.insert(file.parent_path() / id);
      found.utterances.push_back({.id = id,
                                  .audio = audio_of(file.parent_path(), id, where),
                                  .text = std::string(line.substr(gap + 1)),
                                  .speaker = speaker});
    }
  }
  WISP_CHECK(!found.utterances.empty(), folder,
             ": no utterances, expected files *.trans.txt in it");
  for (const fs::path& file : below.files) {
    const bool is_sound = std::ranges::count(kSounds, file.extension().string()) > 0;
    if (is_sound && !heard.contains(file.parent_path() / file.stem()))
      below.skipped.add("sounds without a transcript", file);
  }
  found.notices = below.skipped.notices(folder);
  return found;
}

}  // namespace wisp
