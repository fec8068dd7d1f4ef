#include "data/images/holdout.h"

#include <cstring>

#include "core/base/error.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kHoldOutId = 0xffffffff'686f6c64ull;

/// Copies the samples with these numbers.
ImageSet copy(const ImageSet& set, const std::vector<int64_t>& numbers) {
  ImageSet part = set;
  part.images = Tensor(set.images.shape().with_rows(std::ssize(numbers)), set.images.dtype());
  part.labels = Tensor({std::ssize(numbers)}, set.labels.dtype());
  const int64_t bytes = set.images.bytes() / set.count();
  int64_t row = 0;
  for (const int64_t i : numbers) {
    std::memcpy(part.images.raw() + row * bytes, set.images.raw() + i * bytes,
                static_cast<size_t>(bytes));
    part.labels.data<int32_t>()[row++] = set.labels.data<int32_t>()[i];
  }
  return part;
}

}  // namespace

// Source: Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S: a sample is
// chosen with the probability (still to choose) / (still to come), so the choices come in order.
HeldOutNumbers hold_out(int64_t size, int64_t count, const std::string& name) {
  WISP_CHECK(count > 0 && count < size, "hold_out: ", count, " of ", size, " samples of ", name,
             ", expected at least 1 and fewer than all");
  const Philox philox(0, 0, kHoldOutId);
  HeldOutNumbers numbers;
  for (int64_t i = 0; i < size; ++i) {
    const bool chosen = philox.below64(static_cast<uint64_t>(i), size - i) < count;
    (chosen ? numbers.validation : numbers.train).push_back(i);
    if (chosen) --count;
  }
  return numbers;
}

HeldOut hold_out(const ImageSet& set, int64_t count) {
  const HeldOutNumbers numbers = hold_out(set.count(), count, set.name);
  HeldOut parts{copy(set, numbers.train), copy(set, numbers.validation)};
  parts.validation.name += ", held out";
  return parts;
}

}  // namespace wisp
