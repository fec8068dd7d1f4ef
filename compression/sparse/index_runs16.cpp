// Positions as u16 runs: the number of zeros before each entry, from the field's previous entry on.
// A gap of 65536 or more is cut by entries of run 65535 and value 0, each 65536 positions long. A
// field's k entries leave n - k zeros, so it needs at most (n - k) / 65536 such entries. Source:
// Lin et al. 2018, section 4; the escape is ours.
#include "compression/sparse/sparse_index.h"

namespace wisp {
namespace {

class Runs16 final : public IndexFormat {
 public:
  const char* name() const override { return "runs16"; }
  int number() const override { return 2; }
  int64_t escape() const override { return 1 << 16; }
  bool counts_all() const override { return false; }
  int64_t alignment() const override { return 2; }
  int64_t most_bytes(const UnitSpec& spec, const Room& room) const override {
    return 2 * room.of(spec);
  }
  int64_t least_bytes(int64_t entries) const override { return 2 * entries; }
};

}  // namespace

const IndexFormat& runs16_format() {
  static const Runs16 format;
  return format;
}

}  // namespace wisp
