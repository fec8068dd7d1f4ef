#include "compression/wire_value.h"

#include <string>

namespace wisp {

namespace {
constexpr WireFormat kFormats[] = {WireFormat::f32, WireFormat::f16, WireFormat::bf16,
                                   WireFormat::natural};
}

const char* name_of(WireFormat format) {
  switch (format) {
    case WireFormat::f32:
      return "f32";
    case WireFormat::f16:
      return "f16";
    case WireFormat::bf16:
      return "bf16";
    case WireFormat::natural:
      return "natural";
  }
  throw Error("name_of: not a format of values");
}

WireFormat bind_values(Config& config) {
  std::string values = "f32";
  config.bind("compression.values", values,
              "format of a sparse method's values on the wire: f32, f16, bf16, or natural (sign "
              "and nearest power of two, 9 bits)");
  for (const WireFormat format : kFormats)
    if (values == name_of(format)) return format;
  throw Error(concat(config.where("compression.values"), ": compression.values is '", values,
                     "', expected f32, f16, bf16 or natural"));
}

}  // namespace wisp
