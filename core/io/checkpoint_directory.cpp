#include "core/io/checkpoint_directory.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/checksum.h"
#include "core/io/input_file.h"
#include "core/io/json.h"
#include "core/io/output_file.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // sorted keys: the bytes depend only on content

constexpr const char* kManifest = "manifest.json";
constexpr const char* kStepPrefix = "step_";
constexpr const char* kOldSuffix = ".old";
constexpr const char* kShared = "shared.safetensors";
constexpr const char* kRank = "rank_";
constexpr const char* kTensors = ".safetensors";
constexpr const char* kSaving = "saving.tmp";
constexpr const char* kRemoving = "removing.tmp";  // left by an earlier version
constexpr uintmax_t kFormat = 1;  // format of the manifest and of the names in the files

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  WISP_CHECK(!error, directory.string(), ": cannot be read: ", error.message());
  return entries;
}

/// Removes a checkpoint's files in a directory, and the directory if nothing else is in it. The
/// manifest goes first, so that nothing remains that looks complete, and the shared file last, so
/// that the rest is still known as a checkpoint's. Returns whether all is gone.
bool remove_files(const fs::path& directory) {
  std::error_code none;
  const fs::file_status status = fs::symlink_status(directory, none);
  if (!fs::exists(status)) return true;
  if (!fs::is_directory(status) && !fs::is_symlink(status)) return false;
  if (fs::is_directory(status)) {
    remove_path((directory / kManifest).string());
    for (const fs::path& entry : entries_of(directory)) {
      const std::string name = entry.filename().string();
      const bool is_folder = fs::is_directory(fs::symlink_status(entry, none));
      if (!is_folder && name != kShared && is_checkpoint_file(name)) remove_path(entry.string());
    }
    remove_path((directory / kShared).string());
  }
  remove_path(directory.string());
  return !fs::exists(fs::symlink_status(directory, none));
}

/// Whether a directory holds a checkpoint, whole or damaged.
bool is_checkpoint(const std::string& directory) {
  std::error_code none;
  return fs::exists(directory + "/" + kManifest, none) || fs::exists(shared_file(directory), none);
}

/// Sets the manifest's own checksum, computed with zeros in its place, and returns the text.
std::string sealed(Json& manifest) {
  manifest["crc32c"] = checksum_text(0);
  const std::string text = manifest.dump();
  manifest["crc32c"] = checksum_text(crc32c(text.data(), text.size()));
  return manifest.dump(1) + "\n";
}

void write_manifest(const std::string& directory, const CheckpointFacts& facts) {
  Json files = Json::object();
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (name == kManifest) continue;  // left by a failed publication
    const RandomAccessFile file(entry.string());
    files[name] = {{"bytes", file.bytes()}, {"crc32c", checksum_text(crc32c(file))}};
  }
  Json content = {{"format", kFormat}, {"facts", facts}, {"files", files}};
  OutputFile manifest(directory + "/" + kManifest, OutputFile::Mode::replace);
  manifest.write(sealed(content));
  manifest.sync();
}

struct ManifestEntry {
  std::string path;
  uintmax_t bytes = 0;
  std::string checksum;
};

struct Manifest {
  std::string checksum;  // the manifest's own checksum
  CheckpointFacts facts;
  std::vector<ManifestEntry> files;
};

uintmax_t whole_number(const Json& value) {
  WISP_CHECK(value.is_number_unsigned(), "is damaged: ", value.dump(), " is no whole number");
  return value;
}

Manifest parse_manifest(const std::string& text, const std::string& directory) {
  Json content = naming("is damaged", [&] { return parse_json(text); });
  const uintmax_t format = whole_number(content.at("format"));
  WISP_CHECK(format == kFormat, "is of format ", format, ", this program reads ", kFormat);
  const std::string said = content.at("crc32c");
  sealed(content);
  const std::string found = content["crc32c"];
  WISP_CHECK(said == found, "is damaged: its checksum is ", found, ", it says ", said);
  Manifest manifest{said, content.at("facts").get<CheckpointFacts>(), {}};
  for (const auto& [name, entry] : content.at("files").items()) {
    const bool plain = !name.empty() && name.find('/') == name.npos && name != "." && name != "..";
    WISP_CHECK(plain, "names the file '", name, "', expected a name without a path");
    manifest.files.push_back(
        {directory + "/" + name, whole_number(entry.at("bytes")), entry.at("crc32c")});
  }
  return manifest;
}

Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifest;
  const std::string text = naming(path, [&] { return read_whole_file(path, kMostJsonBytes); });
  try {
    return parse_manifest(text, directory);
  } catch (const Json::exception& error) {
    throw Error(concat(path, ": is damaged: ", error.what()));
  } catch (const Error& error) {
    throw Error(concat(path, ": ", error.what()));
  }
}

/// N of "step_N" or "step_N.old", -1 for other names and for steps that no run reaches.
int64_t step_of(std::string_view name) {
  if (name.ends_with(kOldSuffix)) name.remove_suffix(std::strlen(kOldSuffix));
  if (!name.starts_with(kStepPrefix)) return -1;
  name.remove_prefix(std::strlen(kStepPrefix));
  const int64_t step = number_in<int64_t>(name).value_or(-1);
  // "007" is another program's
  return std::to_string(step) == name && step <= kMostSteps ? step : -1;
}

}  // namespace

bool is_checkpoint_file(std::string_view name) {
  if (name == kManifest || name == kShared || is_unfinished(name)) return true;
  if (!name.starts_with(kRank) || !name.ends_with(kTensors)) return false;
  name.remove_prefix(std::strlen(kRank));
  name.remove_suffix(std::strlen(kTensors));
  return number_in<int>(name).has_value();
}

void prepare_directory(const std::string& tmp) {
  WISP_CHECK(remove_files(tmp), tmp, ": holds files that no checkpoint has; move them away");
  std::error_code error;
  fs::create_directories(tmp, error);
  WISP_CHECK(!error, tmp, ": cannot be made: ", error.message());
}

void publish_directory(const std::string& tmp, const std::string& target,
                       const CheckpointFacts& facts) {
  write_manifest(tmp, facts);
  sync_directory(tmp);
  const std::string old = target + kOldSuffix;
  for (const std::string& name : {target, old})
    WISP_CHECK(is_checkpoint(name) || remove_files(name), name,
               ": is there already, and holds files that no checkpoint has; move them away");
  if (fs::exists(target)) {
    remove_files(old);
    rename_path(target, old);
  }
  rename_path(tmp, target);
  sync_directory(parent_directory(target));
  remove_files(old);
}

std::string find_checkpoint(const std::string& target) {
  if (fs::exists(target)) return target;
  WISP_CHECK(fs::exists(target + kOldSuffix), target, ": there is no checkpoint");
  return target + kOldSuffix;
}

CheckpointFacts verify_checkpoint(const std::string& directory) {
  const Manifest manifest = read_manifest(directory);
  for (const ManifestEntry& entry : manifest.files) {
    const RandomAccessFile file(entry.path);
    WISP_CHECK(static_cast<uintmax_t>(file.bytes()) == entry.bytes, entry.path, ": has ",
               file.bytes(), " bytes, the manifest says ", entry.bytes);
    const std::string found = checksum_text(crc32c(file));
    WISP_CHECK(found == entry.checksum, entry.path, ": is damaged: its checksum is ", found,
               ", the manifest says ", entry.checksum);
  }
  return manifest.facts;
}

CheckpointFacts checkpoint_facts(const std::string& directory) {
  return read_manifest(directory).facts;
}

std::string checkpoint_checksum(const std::string& directory) {
  return read_manifest(directory).checksum;
}

std::string checkpoint_path(const std::string& folder, int64_t step) {
  return folder + "/" + kStepPrefix + std::to_string(step);
}

std::string saving_path(const std::string& folder) { return folder + "/" + kSaving; }

std::string shared_file(const std::string& directory) { return directory + "/" + kShared; }

std::string rank_file(const std::string& directory, int rank) {
  return concat(directory, "/", kRank, rank, kTensors);
}

std::vector<int64_t> checkpoint_steps(const std::string& folder) {
  std::set<int64_t> steps;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const int64_t step = step_of(entry.path().filename().string());
    if (step >= 0 && is_checkpoint(entry.path().string())) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

void remove_checkpoint(const std::string& folder, int64_t step) {
  const std::string path = checkpoint_path(folder, step);
  remove_files(path);
  remove_files(path + kOldSuffix);
}

void remove_checkpoints(const std::string& folder) {
  std::error_code none;
  const fs::file_status status = fs::symlink_status(folder, none);
  if (fs::is_directory(status)) {
    for (const fs::path& entry : entries_of(folder)) {
      const std::string name = entry.filename().string();
      if (step_of(name) >= 0 || name == kSaving || name == kRemoving) remove_files(entry);
    }
  }
  if (fs::is_directory(status) || fs::is_symlink(status)) remove_path(folder);
}

}  // namespace wisp
