#include "apps/run/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "apps/run/run_record.h"
#include "core/base/error.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/input_file.h"
#include "core/io/output_file.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEvents = "events.tfevents.";
constexpr size_t kEventDigits = 10;
constexpr std::string_view kRank = "rank_";
constexpr std::string_view kRecord = ".npy";

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// Whether a text is "0.1.0 (COMMIT)", as in commit.txt.
bool is_version(std::string_view text) {
  const size_t end = text.find(" (");
  if (end == text.npos || !text.ends_with(')')) return false;
  const std::string_view number = text.substr(0, end);
  return std::ranges::count(number, '.') == 2 && number.front() != '.' && number.back() != '.' &&
         number.find_first_not_of("0123456789.") == number.npos;
}

bool is_file(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

/// The names in a folder; none if there is no such folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename().string());
  return names;
}

bool is_folder(const std::string& path) {  // not a link to one
  std::error_code none;
  return fs::is_directory(fs::symlink_status(path, none));
}

/// Whether a folder has a checkpoint with a manifest of Wisp's.
bool holds_checkpoint(const std::string& folder) {
  return std::ranges::any_of(checkpoint_steps(folder), [&](int64_t step) {
    try {
      checkpoint_facts(find_checkpoint(checkpoint_path(folder, step)));
      return true;
    } catch (const Error&) {  // another program's
      return false;
    }
  });
}

/// Removes the recorded gradients in a folder, which GradientRecord wrote.
void remove_gradients(const std::string& folder) {
  if (is_folder(folder)) {
    for (const std::string& rank : names_in(folder)) {
      const std::string own = folder + "/" + rank;
      if (!rank.starts_with(kRank) || !all_digits(std::string_view(rank).substr(kRank.size())))
        continue;
      if (is_folder(own)) {
        for (const std::string& name : names_in(own)) {
          const std::string file = own + "/" + name;
          if (name.ends_with(kRecord) && !is_folder(file)) remove_path(file);
        }
      }
      remove_path(own);
    }
  }
  remove_path(folder);
}

}  // namespace

std::string event_file(int64_t steps) {
  return fmt::format("{}{:0{}}", kEvents, steps, kEventDigits);
}

bool is_event_file(std::string_view name) {
  if (!name.starts_with(kEvents)) return false;
  name.remove_prefix(kEvents.size());
  return name.size() >= kEventDigits && all_digits(name);
}

bool holds_run(const std::string& directory) {
  if (is_file(directory + "/" + kCommitFile) && is_version(version_of(directory))) return true;
  return !is_there(directory + "/" + kConfigFile) &&
         holds_checkpoint(directory + "/" + kCheckpointsFolder);
}

std::string file_in_the_way(const std::string& directory) {
  std::error_code none;
  const std::string folder = directory + "/" + kCheckpointsFolder;
  if (is_there(folder) && !fs::is_directory(folder, none)) return folder;
  const std::string saving = saving_path(folder);
  if (is_there(saving) && !is_folder(saving)) return saving;
  for (const std::string& name : names_in(saving))
    if (!is_checkpoint_file(name)) return saving + "/" + name;
  return "";
}

std::string file_of_another(const std::string& directory) {
  std::error_code none;
  for (const char* name : {kConfigFile, kCommitFile, kFactsFile, kMetricsFile, kSummaryFile,
                           kTraceFile, kDivergedFile}) {
    // a device, such as /dev/null, keeps nothing of anybody's
    const std::string path = directory + "/" + name;
    if (is_there(path) && !fs::is_character_file(path, none)) return path;
  }
  for (const std::string& name : names_in(directory)) {
    if (is_event_file(name)) return directory + "/" + name;
  }
  for (const char* name : {kCheckpointsFolder, kGradientsFolder}) {
    const std::string folder = directory + "/" + name;
    if (is_there(folder) && !fs::is_directory(folder, none)) return folder;
    for (const std::string& inside : names_in(folder)) {
      // an import that was killed may leave it
      if (folder + "/" + inside != saving_path(folder)) return folder;
    }
  }
  return "";
}

void remove_run_file(const std::string& directory, const char* name) {
  const std::string path = directory + "/" + name;
  if (!is_folder(path)) remove_path(path);
}

void remove_run_files(const std::string& directory) {
  for (const char* name : {kSummaryFile, kDivergedFile, kTraceFile, kMetricsFile})
    remove_run_file(directory, name);
  for (const std::string& name : names_in(directory)) {
    if (is_event_file(name) || is_unfinished(name)) remove_run_file(directory, name.c_str());
  }
  remove_gradients(directory + "/" + kGradientsFolder);
  remove_checkpoints(directory + "/" + kCheckpointsFolder);
  for (const char* name : {kFactsFile, kConfigFile, kCommitFile}) remove_run_file(directory, name);
}

}  // namespace wisp
