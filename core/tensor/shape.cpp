#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Limit for a tensor's elements. Sums of the bytes of a few such tensors still fit int64_t.
constexpr int64_t kMostElements = int64_t{1} << 58;

/// Checks the product of the extents, so that no shape's numel() overflows. Sizes are checked only
/// here.
void check_size(const Shape& shape) {
  int64_t product = 1;
  bool fits = true;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t extent = std::max<int64_t>(shape[i], 1);  // an extent of 0 must not hide others
    fits = fits && !__builtin_mul_overflow(product, extent, &product) && product <= kMostElements;
  }
  if (!fits)
    throw OutOfMemory(
        concat("out of memory: a shape of ", shape, ", expected at most 2^58 elements"));
}

}  // namespace

Shape::Shape(std::span<const int64_t> extents) {
  WISP_CHECK(extents.size() <= kMaxRank, "Shape: ", extents.size(), " extents, at most ", kMaxRank,
             " are possible");
  for (int64_t extent : extents) {
    WISP_CHECK(extent >= 0, "Shape: extent ", extent, " at position ", rank_,
               ", expected 0 or more");
    extents_[static_cast<size_t>(rank_++)] = extent;
  }
  check_size(*this);
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

Shape Shape::with(const char* what, int i, int64_t extent) const {
  WISP_CHECK(rank_ > 0, "with_", what, ": a scalar has no ", what);
  Shape shape = *this;
  shape.extents_[static_cast<size_t>(i)] = extent;
  check_size(shape);
  return shape;
}

Shape Shape::stacked(int64_t n) const {
  std::array<int64_t, kMaxRank + 1> extents{n};
  std::copy_n(extents_.begin(), rank_, extents.begin() + 1);
  return Shape(std::span<const int64_t>(extents).first(static_cast<size_t>(rank_) + 1));
}

std::string Shape::str() const {
  std::string text = "(";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string((*this)[i]);
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

}  // namespace wisp
