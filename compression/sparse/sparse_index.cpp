#include "compression/sparse/sparse_index.h"

#include <array>

namespace wisp {
namespace {

/// The number of zeros before each entry, from the field's previous entry on. A gap of 65536 or
/// more is cut by entries of run 65535 and value 0, each 65536 positions long.
class Runs16 final : public IndexFormat {
 public:
  const char* name() const override { return "runs16"; }
  int number() const override { return 2; }
  int64_t escape() const override { return 1 << 16; }
  bool counts_all() const override { return false; }
  int64_t alignment() const override { return 2; }
};

class U32 final : public IndexFormat {
 public:
  const char* name() const override { return "u32"; }
  int number() const override { return 4; }
};

/// The formats in the order of Indices, without `shortest`.
std::array<const IndexFormat*, 4> formats() {
  static const Runs16 runs16;
  static const U32 u32;
  return {&runs16, &u32, &gamma_format(), &bitmap_format()};
}

}  // namespace

const IndexFormat& index_format(Indices indices, const UnitSpec& spec, const Room& room,
                                int64_t value_bits) {
  if (indices != Indices::shortest) return *formats()[static_cast<size_t>(indices) - 1];
  const auto bits = [&](const IndexFormat& format) {
    const int64_t counts = format.counts_all() ? 4 : 0;
    const Room entries = with_escapes(format, room);
    return 8 * (format.most_bytes(spec, entries) + counts) + value_bits * entries.of(spec);
  };
  const IndexFormat* best = formats()[0];
  for (const IndexFormat* format : formats())
    if (bits(*format) < bits(*best)) best = format;
  return *best;
}

}  // namespace wisp
