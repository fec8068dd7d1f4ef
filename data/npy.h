// Arrays in NumPy's file format, .npy, row by row: rows are the first dimension, a row is what is
// behind it. f32 and f64 are read and written, little-endian and in C order. Source: NumPy's "NPY
// format", versions 1.0 and 2.0. One thread at a time.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

class NpyReader {
 public:
  /// Reads the header. Throws Error with the path for a file that is no such array, holds rows of
  /// no elements or of more than Shape::kMaxRank dimensions, or ends before the rows that it
  /// promises; bytes behind them are ignored: they are of a row that somebody is writing.
  explicit NpyReader(std::string path);

  const std::string& path() const { return path_; }
  int64_t rows() const { return rows_; }
  const Shape& row_shape() const { return row_shape_; }
  /// Row `row` of rows(), f64 rounded to f32.
  void read(int64_t row, float* into) { read_as(row, into, wide_); }
  /// The same, f32 widened to f64.
  void read(int64_t row, double* into) { read_as(row, into, narrow_); }

 private:
  template <class T, class Other>
  void read_as(int64_t row, T* into, std::vector<Other>& other);

  std::string path_;
  std::ifstream in_;
  DType dtype_ = DType::f32;
  int64_t rows_ = 0;
  Shape row_shape_;
  int64_t begin_ = 0;          // of the data in the file
  std::vector<float> narrow_;  // a row of f32
  std::vector<double> wide_;   // a row of f64
};

/// Adds rows to a file. It is whole at any time: a row is counted in the header after it was
/// written.
class NpyWriter {
 public:
  /// Goes on in the file, or begins one without rows. Throws Error with the path if the file holds
  /// anything else than what a writer of such rows left.
  NpyWriter(std::string path, const Shape& row_shape, DType dtype = DType::f32);
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  int64_t rows() const { return rows_; }
  /// Of the file's dtype.
  void append(const float* row) { append(row, DType::f32); }
  void append(const double* row) { append(row, DType::f64); }
  /// Removes all rows but the first `rows`.
  void keep(int64_t rows);

 private:
  void append(const void* row, DType dtype);
  void count(int64_t rows);

  std::string path_;
  Shape row_shape_;
  DType dtype_;
  int64_t rows_ = 0;
  int descriptor_ = -1;
};

/// Writes a host tensor as a file, in its own dtype. Throws Error for bf16, which NumPy has not.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace wisp
