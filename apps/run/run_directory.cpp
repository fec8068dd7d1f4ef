#include "apps/run/run_directory.h"

#include <filesystem>

#include "apps/version.h"
#include "core/base/error.h"
#include "core/io/output_file.h"

namespace wisp {

namespace fs = std::filesystem;

RunDirectory::RunDirectory(std::string path, Open how) : path_(std::move(path)), how_(how) {
  std::error_code ignored;
  const bool holds_run =
      fs::exists(file("config.toml"), ignored) || fs::exists(file("checkpoints"), ignored);
  WISP_CHECK(how != Open::create || !holds_run, path_,
             " holds a run already; choose another --out, go on with --resume, or replace it with "
             "--overwrite");
  WISP_CHECK(how != Open::resume || holds_run, path_, " holds no run (no config.toml)");
}

void RunDirectory::make() {
  std::error_code failure;
  fs::create_directories(path_, failure);
  WISP_CHECK(!failure, "cannot make the run directory ", path_, ": ", failure.message());
  lock_.emplace(file("lock"));
  if (how_ != Open::overwrite) return;
  for (const char* name :
       {"checkpoints", "gradients", "metrics.jsonl", "trace.json", "summary.json", "facts.json",
        kDivergedFile, "commit.txt", "config.toml"}) {
    fs::remove_all(file(name), failure);
    WISP_CHECK(!failure, file(name), ": cannot be removed: ", failure.message());
  }
}

void RunDirectory::write_identity(const Config& config, const RunFacts& facts) const {
  std::error_code none_there;
  fs::remove(file(kDivergedFile), none_there);
  write_file(file("config.toml"), config.resolved());
  write_file(file("commit.txt"), program_version() + "\n");
  write_file(file("facts.json"), facts.json());
}

}  // namespace wisp
