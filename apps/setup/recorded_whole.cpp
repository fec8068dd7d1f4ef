#include "apps/setup/recorded_whole.h"

#include <filesystem>

#include "core/base/error.h"

namespace wisp {

std::optional<RecordedWhole> RecordedWhole::beside(const std::string& layer_file, int64_t steps) {
  const std::string path = std::filesystem::path(layer_file).replace_filename(kFile);
  if (!std::filesystem::exists(path)) return std::nullopt;
  NpyReader file(path);
  WISP_CHECK(file.rows() == steps && file.row_shape() == Shape{kWords}, path, ": has ", file.rows(),
             " rows of ", file.row_shape(), ", expected ", steps, " of ", Shape{kWords},
             ", one for each row of ", layer_file);
  return RecordedWhole(std::move(file));
}

WholeGradient RecordedWhole::at(int64_t step) {
  double words[kWords];
  file_.read(step, words);
  return {.elements = static_cast<int64_t>(words[0]), .norm = words[1]};
}

}  // namespace wisp
