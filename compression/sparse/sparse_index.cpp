#include "compression/sparse/sparse_index.h"

#include <algorithm>
#include <array>

namespace wisp {
namespace {

/// The formats in the order of Indices, without `shortest`.
std::array<const IndexFormat*, 4> formats() {
  // A run is the number of zeros from the field's previous entry on. A gap of 65536 or more is cut
  // by entries of run 65535 and value 0, each 65536 positions long. A field's k entries leave n - k
  // zeros, so at most (n - k) / 65536 escapes.
  static const IndexFormat runs16(
      {.name = "runs16", .number = 2, .escape = 1 << 16, .counts_all = false, .alignment = 2});
  static const IndexFormat u32({.name = "u32", .number = 4});
  return {&runs16, &u32, &gamma_format(), &bitmap_format()};
}

}  // namespace

const IndexFormat& index_format(Indices indices, const UnitSpec& spec, const Room& room,
                                int64_t value_bits) {
  if (indices != Indices::shortest) return *formats()[static_cast<size_t>(indices) - 1];
  const auto bits = [&](const IndexFormat* format) {
    const int64_t counts = format->counts_all ? 4 : 0;
    const Room entries = with_escapes(*format, room);
    return 8 * (format->most_bytes(spec, entries) + counts) + value_bits * entries.of(spec);
  };
  return *std::ranges::min(formats(), {}, bits);
}

}  // namespace wisp
