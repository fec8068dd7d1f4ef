#include "data/speech/transcripts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/io/input_file.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> transcript_files(const std::string& folder) {
  std::error_code failure;
  WISP_CHECK(fs::is_directory(folder, failure), folder, ": no such folder");
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename().string().ends_with(".trans.txt")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string audio_of(const fs::path& folder, const std::string& id, const std::string& where) {
  for (const char* ending : {".flac", ".wav", ".sph", ".raw"}) {
    const std::string path = (folder / (id + ending)).string();
    if (fs::exists(path)) return path;
  }
  throw Error(concat(where, ": there is no ", id, ".flac, .wav, .sph or .raw beside it"));
}

}  // namespace

std::vector<Utterance> read_transcripts(const std::string& folder) {
  std::vector<Utterance> utterances;
  std::set<std::string> ids;
  for (const fs::path& file : transcript_files(folder)) {
    std::ifstream in(file);
    WISP_CHECK(in, file.string(), ": cannot be read");
    const fs::path relative = fs::relative(file, folder);
    const std::string speaker = relative.has_parent_path() ? relative.begin()->string() : "";
    std::string line;
    for (int64_t number = 1; std::getline(in, line); ++number) {
      const std::string where = concat(file.string(), ":", number);
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      const size_t gap = line.find(' ');
      WISP_CHECK(gap != line.npos && line.find_first_not_of(" \t\r", gap) != line.npos, where,
                 ": expected \"ID WORDS\"");
      naming(where, [&] { check_utf8(line); });
      const std::string id = line.substr(0, gap);
      WISP_CHECK(ids.insert(id).second, where, ": ", id, " is there twice");
      utterances.push_back({.id = id,
                            .audio = audio_of(file.parent_path(), id, where),
                            .text = line.substr(gap + 1),
                            .speaker = speaker});
    }
  }
  WISP_CHECK(!utterances.empty(), folder, ": no utterances, expected files *.trans.txt in it");
  return utterances;
}

}  // namespace wisp
