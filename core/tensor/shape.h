// The extents of a tensor: at most six, row-major, the last one contiguous. A value type.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

namespace wisp {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return extents_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  /// The extents, in order.
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return begin() + rank_; }
  int64_t numel() const;
  /// Product of all extents except the last: the number of rows as a matrix (1 for a scalar).
  int64_t rows() const { return rank_ == 0 ? 1 : numel() / (*this)[-1]; }
  /// The shape with another first extent. Throws Error for a scalar.
  Shape with_rows(int64_t rows) const { return with("rows", 0, rows); }
  /// The shape with another last extent. Throws Error for a scalar.
  Shape with_columns(int64_t columns) const { return with("columns", rank_ - 1, columns); }
  /// (n, extents …), the shape of n stacked tensors. Throws Error beyond kMaxRank.
  Shape stacked(int64_t n) const;
  std::string str() const;
  bool operator==(const Shape&) const = default;

 private:
  Shape with(const char* what, int i, int64_t extent) const;

  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace wisp
