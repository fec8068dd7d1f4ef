#include "core/io/input_file.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace wisp {

namespace fs = std::filesystem;

std::string read_whole_file(const std::string& path, int64_t most_bytes) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  WISP_CHECK(type != fs::file_type::not_found, "there is no such file");
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(type == fs::file_type::regular, "it is no file");
  const auto size = static_cast<int64_t>(fs::file_size(path, failure));
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(size <= most_bytes, "it has ", size, " bytes, expected ", most_bytes, " at most");
  std::string bytes(static_cast<size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), size);
  WISP_CHECK(in, "it cannot be read");
  return bytes;
}

}  // namespace wisp
