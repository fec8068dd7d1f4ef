#include "core/io/input_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/io/utf8.h"

namespace wisp {

namespace fs = std::filesystem;

int64_t file_bytes(const std::string& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  WISP_CHECK(type != fs::file_type::not_found, "there is no such file");
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(type == fs::file_type::regular, "it is no file");
  const auto bytes = static_cast<int64_t>(fs::file_size(path, failure));
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  return bytes;
}

std::string read_head(const std::string& path, int64_t most_bytes) {
  std::string bytes(static_cast<size_t>(std::min(file_bytes(path), most_bytes)), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), std::ssize(bytes));
  WISP_CHECK(in, "it cannot be read");
  return bytes;
}

std::string read_whole_file(const std::string& path, int64_t most_bytes) {
  const int64_t size = file_bytes(path);
  WISP_CHECK(size <= most_bytes, "it has ", size, " bytes, expected ", most_bytes, " at most");
  return read_head(path, size);
}

std::string read_to_end(const std::string& path) {
  std::error_code failure;
  std::ifstream in(path, std::ios::binary);
  WISP_CHECK(in && !fs::is_directory(path, failure), "cannot read the file");
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  WISP_CHECK(!in.bad(), "cannot read the file to its end");
  return bytes;
}

std::string read_utf8(const std::string& path) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // written by spreadsheets and some editors
  std::string text = read_to_end(path);
  check_utf8(text);
  const size_t zero = text.find('\0');
  WISP_CHECK(zero == text.npos, "line ",
             1 + std::count(text.data(), text.data() + std::min(zero, text.size()), '\n'),
             " has a byte of zero, expected text");
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

}  // namespace wisp
