// Functions that read whole files. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace wisp {

/// Calls f() and prefixes its Errors with `where`, a path or a place in a file.
template <class F>
decltype(auto) naming(const std::string& where, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(concat(where, ": ", error.what()));
  }
}

/// The size of a file in bytes. Throws Error, without the path, if the file does not exist.
int64_t file_bytes(const std::string& path);

/// The first bytes of a file, at most `most_bytes`. Throws Error, without the path, if the file
/// does not exist or cannot be read.
std::string read_head(const std::string& path, int64_t most_bytes);

/// All bytes of a file. Throws Error, without the path, like read_head(), and if there are more
/// than `most_bytes`.
std::string read_whole_file(const std::string& path, int64_t most_bytes);

/// All bytes of a file or a pipe. Throws Error, without the path, if they cannot be read.
std::string read_to_end(const std::string& path);

/// The UTF-8 text of a file or a pipe, without a leading byte order mark. Throws Error, without the
/// path, like read_to_end() and check_utf8(), and for a zero byte.
std::string read_utf8(const std::string& path);

}  // namespace wisp
