// The header of a safetensors file: the names, types and places of its tensors. Source:
// huggingface.co/docs/safetensors. Any thread.
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
  std::string dtype;  // name in the format: "F32"
  std::vector<int64_t> extents;
  int64_t begin = 0, end = 0;  // byte offsets from the end of the header

  std::string str() const;  // "F32 [2,3]"
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;

  /// The header as JSON with sorted keys. Its bytes depend only on the content.
  std::string text() const;
  /// Reads an untrusted header of a file with `data_bytes` bytes behind the header. Throws Error
  /// unless each tensor is named once, has the bytes of its shape (any number for a dtype that is
  /// not of the format), and the tensors fill the file without a gap. Metadata may be null, for
  /// none. Takes memory of a small multiple of the text.
  static SafetensorsHeader parse(std::string_view text, int64_t data_bytes);
};

/// Limit for the header's bytes; it suffices for a hundred thousand tensors.
constexpr int64_t kMaxSafetensorsHeader = 16 << 20;

const char* safetensors_name(DType dtype);
/// Empty for a type unknown to Wisp.
std::optional<DType> safetensors_dtype(std::string_view name);

}  // namespace wisp
