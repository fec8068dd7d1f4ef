// Files that are read as a whole. Any thread may call.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace wisp {

/// f(); its Errors begin with `where`, a path or a place in a file.
template <class F>
decltype(auto) naming(const std::string& where, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(concat(where, ": ", error.what()));
  }
}

/// The bytes that a file has. Throws Error, without the path, if there is no such file.
int64_t file_bytes(const std::string& path);

/// The first of them, so many at most. Throws Error, without the path, as file_bytes() and if they
/// cannot be read.
std::string read_head(const std::string& path, int64_t most_bytes);

/// All bytes of a file. Throws Error, without the path, as read_head() and for more than so many.
std::string read_whole_file(const std::string& path, int64_t most_bytes);

/// All bytes of a file or a pipe. Throws Error, without the path, if they cannot be read.
std::string read_to_end(const std::string& path);

/// The same of a text in UTF-8, without the byte order mark that it may begin with. Throws Error,
/// without the path, as read_to_end() and check_utf8(), and for a byte of zero.
std::string read_utf8(const std::string& path);

}  // namespace wisp
