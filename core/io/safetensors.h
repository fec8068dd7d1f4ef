// The header of a safetensors file: which tensors it holds, and where. Source: the format's
// description, huggingface.co/docs/safetensors. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/dtype.h"

namespace wisp {

struct SafetensorsEntry {
  std::string dtype;  // the format's name for it: "F32"
  std::vector<int64_t> extents;
  int64_t begin = 0, end = 0;  // bytes, from the end of the header

  std::string str() const;  // "F32 [2,3]"
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;

  /// JSON with sorted keys. Its bytes depend on the content alone.
  std::string text() const;
  /// Reads a header that anyone may have written, of a file with so many bytes behind it. Throws
  /// Error unless each tensor is named once, has as many bytes as its shape says (a dtype that Wisp
  /// has not: any number), and the tensors fill the file without a gap. Memory: a small multiple of
  /// the text.
  static SafetensorsHeader parse(std::string_view text, int64_t data_bytes);
};

/// The longest header that is read: room for a hundred thousand tensors.
constexpr int64_t kMaxSafetensorsHeader = 16 << 20;

const char* safetensors_name(DType dtype);
/// Nothing for a type that Wisp has not.
std::optional<DType> safetensors_dtype(std::string_view name);

}  // namespace wisp
