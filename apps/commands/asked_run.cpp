#include "apps/commands/asked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "apps/commands/commands.h"
#include "core/base/error.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

/// Whether an argument is KEY=VALUE: "a.b=1" is, unless a file has that name; "./a.b=1" is not.
bool changes_a_key(const std::string& argument) {
  const size_t end = argument.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.");
  return end != std::string::npos && end > 0 && argument[end] == '=' && argument[0] != '.' &&
         !std::filesystem::exists(argument);
}

}  // namespace

void AskedRun::add_to(CLI::App& command, const std::string& read) {
  constexpr const char* kKeys = "keys to change: train.precision=f32";
  reads_files_ = !read.empty();
  command.add_option("run", path, "run directory")->required();
  if (reads_files_) {
    command.add_option("files", files, read + "; and " + kKeys)->required();
  } else {
    command.add_option("overrides", overrides, kKeys);
  }
  add_with_default(command, "--checkpoint", checkpoint, "last, best, or a step");
  command.add_flag("--json", json, "print JSON");
}

std::unique_ptr<Inference> AskedRun::open() {
  if (reads_files_) {
    const auto keys = std::stable_partition(files.begin(), files.end(), std::not_fn(changes_a_key));
    overrides.assign(keys, files.end());
    files.erase(keys, files.end());
    WISP_CHECK(!files.empty(), "no file is named, only keys to change: ", overrides.front());
  }
  auto model = std::make_unique<Inference>(path, overrides, checkpoint);
  for (const std::string& notice : model->notices()) write_notice(notice);
  return model;
}

}  // namespace wisp
