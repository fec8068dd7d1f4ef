#include "compression/wire_value.h"

namespace wisp {

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
  WireFormat values = WireFormat::f32;
  config.bind_choice("compression.values", values,
                     {{name_of(WireFormat::f32), WireFormat::f32},
                      {name_of(WireFormat::f16), WireFormat::f16},
                      {name_of(WireFormat::bf16), WireFormat::bf16},
                      {name_of(WireFormat::natural), WireFormat::natural}},
                     "format of a sparse method's values on the wire: f32, f16, bf16, or natural "
                     "(sign and nearest power of two, 9 bits)");
  return values;
}

}  // namespace wisp
