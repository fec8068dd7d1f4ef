#include "apps/run_directory.h"

#include <filesystem>

#include "apps/version.h"
#include "core/error.h"
#include "core/output_file.h"

namespace wisp {

namespace fs = std::filesystem;

RunDirectory::RunDirectory(std::string path, Open how) : path_(std::move(path)), how_(how) {
  std::error_code ignored;
  const bool holds_run = fs::exists(file("config.toml"), ignored);
  WISP_CHECK(how != Open::create || !holds_run, path_,
             " holds a run already; choose another --out, go on with --resume, or replace it with "
             "--overwrite");
  WISP_CHECK(how != Open::resume || holds_run, path_, " holds no run (no config.toml)");
}

void RunDirectory::make() const {
  std::error_code failure;
  if (how_ == Open::overwrite && fs::exists(file("config.toml"), failure))
    fs::remove_all(path_, failure);
  if (!failure) fs::create_directories(path_, failure);
  WISP_CHECK(!failure, "cannot make the run directory ", path_, ": ", failure.message());
}

void RunDirectory::write_config(const Config& config) const {
  write("config.toml", config.resolved());
  write("commit.txt", program_version() + "\n");
}

void RunDirectory::write(const std::string& name, const std::string& content) const {
  const std::string temporary = file(name) + ".tmp";
  {
    OutputFile out(temporary, OutputFile::Mode::replace);
    out.write(content);
    out.sync();
  }
  rename_path(temporary, file(name));
}

}  // namespace wisp
