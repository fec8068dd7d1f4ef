#include "data/images/holdout.h"

#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kHoldOutId = 0xffffffff'686f6c64ull;

/// Chooses `count` of `size` samples; element i is true if sample i is chosen. Source: Knuth, The
/// Art of Computer Programming, volume 2, section 3.4.2, algorithm S: a sample is chosen with the
/// probability (still to choose) / (still to come), so the choices come in order.
std::vector<bool> choose(int64_t size, int64_t count) {
  const Philox philox(0, 0, kHoldOutId);
  std::vector<bool> chosen(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    if (philox.below64(static_cast<uint64_t>(i), size - i) >= count) continue;
    chosen[static_cast<size_t>(i)] = true;
    --count;
  }
  return chosen;
}

/// Copies the `count` samples whose entry in `chosen` equals `which`.
ImageSet copy(const ImageSet& set, const std::vector<bool>& chosen, bool which, int64_t count) {
  ImageSet part = set;
  part.images = Tensor(set.images.shape().with_rows(count), set.images.dtype());
  part.labels = Tensor({count}, set.labels.dtype());
  const int64_t bytes = set.images.bytes() / set.count();
  int64_t row = 0;
  for (int64_t i = 0; i < set.count(); ++i) {
    if (chosen[static_cast<size_t>(i)] != which) continue;
    std::memcpy(part.images.raw() + row * bytes, set.images.raw() + i * bytes,
                static_cast<size_t>(bytes));
    part.labels.data<int32_t>()[row++] = set.labels.data<int32_t>()[i];
  }
  return part;
}

}  // namespace

HeldOut hold_out(const ImageSet& set, int64_t count) {
  WISP_CHECK(count > 0 && count < set.count(), "hold_out: ", count, " of ", set.count(),
             " samples of ", set.name, ", expected at least 1 and fewer than all");
  const std::vector<bool> chosen = choose(set.count(), count);
  HeldOut parts{copy(set, chosen, false, set.count() - count), copy(set, chosen, true, count)};
  parts.validation.name += ", held out";
  return parts;
}

}  // namespace wisp
