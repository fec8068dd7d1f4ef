#include "core/checkpoint_directory.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/checksum.h"
#include "core/error.h"
#include "core/output_file.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // keys sorted: bytes depend on content alone

constexpr const char* kManifest = "manifest.json";

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  WISP_CHECK(!error, path, ": cannot be removed: ", error.message());
}

std::string file_checksum(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  WISP_CHECK(file, path, ": cannot be opened: ", std::strerror(errno));
  std::vector<char> block(1 << 20);
  uint32_t checksum = 0;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    checksum = crc32c(block.data(), static_cast<size_t>(file.gcount()), checksum);
  }
  WISP_CHECK(!file.bad(), path, ": cannot be read");
  return checksum_text(checksum);
}

void write_manifest(const std::string& directory) {
  Json files = Json::object();
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name == kManifest) continue;  // of a publication that failed
    WISP_CHECK(entry.is_regular_file(), entry.path().string(), ": is not a file");
    files[name] = {{"bytes", entry.file_size()}, {"crc32c", file_checksum(entry.path().string())}};
  }
  OutputFile manifest(directory + "/" + kManifest, OutputFile::Mode::replace);
  manifest.write(Json{{"files", files}}.dump(1) + "\n");
  manifest.sync();
}

struct ManifestEntry {
  std::string path;
  uintmax_t bytes = 0;
  std::string checksum;
};

std::vector<ManifestEntry> read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifest;
  std::ifstream file(path);
  WISP_CHECK(file, path, ": cannot be opened: ", std::strerror(errno));
  std::vector<ManifestEntry> entries;
  try {
    const Json manifest = Json::parse(file);
    for (const auto& [name, entry] : manifest.at("files").items())
      entries.push_back({directory + "/" + name, entry.at("bytes"), entry.at("crc32c")});
  } catch (const Json::exception& error) {
    throw Error(concat(path, ": is damaged: ", error.what()));
  }
  return entries;
}

}  // namespace

void prepare_directory(const std::string& tmp) {
  remove_tree(tmp);
  std::error_code error;
  fs::create_directories(tmp, error);
  WISP_CHECK(!error, tmp, ": cannot be made: ", error.message());
}

void publish_directory(const std::string& tmp, const std::string& target) {
  write_manifest(tmp);
  sync_directory(tmp);
  const std::string old = target + ".old";
  if (fs::exists(target)) {
    remove_tree(old);
    rename_path(target, old);
  }
  rename_path(tmp, target);
  sync_directory(parent_directory(target));
  remove_tree(old);
}

std::string find_checkpoint(const std::string& target) {
  const std::string old = target + ".old";
  const std::string& found = fs::exists(target) ? target : old;
  WISP_CHECK(fs::exists(found), target, ": there is no checkpoint");
  for (const ManifestEntry& entry : read_manifest(found)) {
    std::error_code error;
    const uintmax_t bytes = fs::file_size(entry.path, error);
    WISP_CHECK(!error, entry.path, ": cannot be read: ", error.message());
    WISP_CHECK(bytes == entry.bytes, entry.path, ": has ", bytes, " bytes, the manifest says ",
               entry.bytes);
  }
  return found;
}

void verify_checkpoint(const std::string& directory) {
  for (const ManifestEntry& entry : read_manifest(directory)) {
    const std::string found = file_checksum(entry.path);
    WISP_CHECK(found == entry.checksum, entry.path, ": is damaged: its checksum is ", found,
               ", the manifest says ", entry.checksum);
  }
}

}  // namespace wisp
