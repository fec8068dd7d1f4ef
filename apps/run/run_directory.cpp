#include "apps/run/run_directory.h"

#include <filesystem>

#include "apps/version.h"
#include "core/base/error.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/output_file.h"

namespace wisp {

namespace fs = std::filesystem;

RunDirectory::RunDirectory(std::string path, Open how) : path_(std::move(path)), how_(how) {
  std::error_code none;
  if (how == Open::read)
    WISP_CHECK(fs::exists(file(kConfigFile), none) || fs::exists(file(kCheckpointsFolder), none),
               path_, " holds no run (no config.toml)");
  look();
}

RunDirectory::~RunDirectory() {
  if (!begun_) withdraw();
}

void RunDirectory::look() {
  // where another rank follows, a network's file system would remember what is not there yet
  if (how_ == Open::read || how_ == Open::follow) return;
  held_run_ = holds_run(path_);
  const std::string other = held_run_ ? "" : file_of_another(path_);
  WISP_CHECK(other.empty(), other, " is there, but no run made this directory (it has no ",
             kCommitFile,
             " of a run), so nothing in it is used, replaced or removed; choose "
             "another --out");
  const std::string blocked = file_in_the_way(path_);
  WISP_CHECK(blocked.empty(), blocked, " is in the way of checkpoints; move it away");
  WISP_CHECK(how_ != Open::create || !held_run_, path_,
             " holds a run already; choose another --out, go on with --resume, or replace it with "
             "--overwrite");
  goes_on_ = how_ == Open::resume && !checkpoint_steps(file(kCheckpointsFolder)).empty();
}

void RunDirectory::make() {
  std::error_code failure;
  made_ = !fs::exists(path_, failure);
  fs::create_directories(path_, failure);
  WISP_CHECK(!failure, "cannot make the run directory ", path_, ": ", failure.message());
  made_lock_ = !fs::exists(file(kLockFile), failure);
  lock_.emplace(file(kLockFile));
  look();  // another process may have begun or ended a run since
}

/// Removes what make() made. Others' files stay, and the directory with them.
void RunDirectory::withdraw() {
  std::error_code none;
  if (lock_ && made_lock_) fs::remove(file(kLockFile), none);
  if (made_) fs::remove(path_, none);
}

void RunDirectory::begin() {
  if (begun_) return;
  begun_ = true;
  if (goes_on_) {
    for (const char* name : {kSummaryFile, kDivergedFile}) remove_run_file(path_, name);
  } else if (held_run_) {
    remove_run_files(path_);
  }
}

void RunDirectory::write_identity(const Config& config, const RunFacts& facts) const {
  const std::string text = facts.json();
  write_file(file(kCommitFile), program_version() + "\n");
  write_file(file(kConfigFile), config.resolved());
  write_file(file(kFactsFile), text);
}

}  // namespace wisp
