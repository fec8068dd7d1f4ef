// Matrices for tests of low-rank methods: fields of matrices, and plain products in double
// precision.
#pragma once

#include <cmath>
#include <vector>

#include "core/random.h"
#include "tests/support/method_rig.h"

namespace wisp {

struct Extents {
  int64_t rows, columns;
};

/// One field per matrix, with one slice each and `gap` elements of padding between them.
inline std::vector<Field> matrix_fields(const std::vector<Extents>& matrices, int64_t gap = 3) {
  std::vector<Field> fields;
  int64_t offset = 0;
  for (const Extents& extents : matrices) {
    const int64_t numel = extents.rows * extents.columns;
    fields.push_back({.slices = {{offset, numel}},
                      .numel = numel,
                      .key = fields.size() + 1,
                      .rows = extents.rows});
    offset += numel + gap;
  }
  return fields;
}

class DenseMatrix {
 public:
  DenseMatrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), numbers_(static_cast<size_t>(rows * columns)) {}
  DenseMatrix(const float* numbers, int64_t rows, int64_t columns) : DenseMatrix(rows, columns) {
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = numbers[i];
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  double& operator()(int64_t i, int64_t j) {
    return numbers_[static_cast<size_t>(i * columns_ + j)];
  }
  double operator()(int64_t i, int64_t j) const {
    return numbers_[static_cast<size_t>(i * columns_ + j)];
  }

  DenseMatrix transposed() const {
    DenseMatrix result(columns_, rows_);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) result(j, i) = (*this)(i, j);
    return result;
  }
  DenseMatrix plus(const DenseMatrix& other, double factor) const {
    DenseMatrix result = *this;
    for (size_t i = 0; i < numbers_.size(); ++i) result.numbers_[i] += factor * other.numbers_[i];
    return result;
  }
  double norm() const {
    double sum = 0.0;
    for (const double number : numbers_) sum += number * number;
    return std::sqrt(sum);
  }
  /// An orthonormal basis of the columns' span, by textbook Gram-Schmidt.
  DenseMatrix orthonormal() const {
    DenseMatrix result = *this;
    for (int64_t c = 0; c < columns_; ++c) {
      for (int64_t before = 0; before < c; ++before) {
        double along = 0.0;
        for (int64_t i = 0; i < rows_; ++i) along += result(i, before) * result(i, c);
        for (int64_t i = 0; i < rows_; ++i) result(i, c) -= along * result(i, before);
      }
      double square = 0.0;
      for (int64_t i = 0; i < rows_; ++i) square += result(i, c) * result(i, c);
      for (int64_t i = 0; i < rows_; ++i) result(i, c) /= std::sqrt(square);
    }
    return result;
  }

 private:
  int64_t rows_, columns_;
  std::vector<double> numbers_;
};

inline DenseMatrix operator*(const DenseMatrix& a, const DenseMatrix& b) {
  DenseMatrix result(a.rows(), b.columns());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < b.columns(); ++j)
      for (int64_t k = 0; k < a.columns(); ++k) result(i, j) += a(i, k) * b(k, j);
  return result;
}
inline DenseMatrix operator+(const DenseMatrix& a, const DenseMatrix& b) { return a.plus(b, 1.0); }
inline DenseMatrix operator-(const DenseMatrix& a, const DenseMatrix& b) { return a.plus(b, -1.0); }

inline DenseMatrix random_matrix(int64_t rows, int64_t columns, uint64_t id) {
  const Philox random(5, 0, id);
  DenseMatrix result(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result(i, j) = random.nearly_normal(static_cast<uint64_t>(i * columns + j));
  return result;
}
inline DenseMatrix random_of_rank(int64_t rank, int64_t rows, int64_t columns, uint64_t id) {
  return random_matrix(rows, rank, 2 * id) * random_matrix(rank, columns, 2 * id + 1);
}

/// A field of a rig's arena as a matrix.
inline DenseMatrix read_matrix(const float* arena, const Field& field) {
  return {arena + field.slices[0].offset, field.rows, field.numel / field.rows};
}
inline void write_matrix(const DenseMatrix& matrix, float* arena, const Field& field) {
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.columns(); ++j)
      arena[field.slices[0].offset + i * matrix.columns() + j] = static_cast<float>(matrix(i, j));
}

/// P or Q of field `f`, (rank, length). A method's state is an optional residual, then P and Q of
/// each field.
inline Tensor factor_state(MethodRig& rig, int rank, size_t f, char name) {
  const std::vector<Tensor>& tensors = rig.unit(rank).state->tensors;
  const size_t residual = tensors.size() % 2;
  return tensors[residual + 2 * f + (name == 'p' ? 0 : 1)];
}
inline DenseMatrix factor_matrix(MethodRig& rig, int rank, size_t f, char name) {
  const Tensor factor = factor_state(rig, rank, f, name);
  return {factor.data<float>(), factor.shape()[0], factor.shape()[1]};
}

/// The initial Q of a step. Its random numbers follow P's.
inline DenseMatrix drawn_q(const Field& field, int64_t rank, const StepInfo& info) {
  const int64_t columns = field.numel / field.rows;
  DenseMatrix q(columns, rank);
  const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
  for (int64_t c = 0; c < rank; ++c)
    for (int64_t i = 0; i < columns; ++i)
      q(i, c) = random.nearly_normal(static_cast<uint64_t>(rank * field.rows + c * columns + i));
  return q;
}

}  // namespace wisp
