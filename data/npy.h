// Arrays in NumPy's file format, .npy, read and written row by row. A row is one element of the
// first dimension. Files hold f32 or f64, little-endian and in C order. Source: NumPy's "NPY
// format", versions 1.0 and 2.0. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "core/tensor/tensor.h"

namespace wisp {

class NpyReader {
 public:
  /// Reads the header. Throws Error with the path for a file that is no .npy array of f32 or f64,
  /// that ends before its last row, or whose row is larger than the file. So a row takes no more
  /// memory than the file has bytes. A row must have an element, and at most Shape::kMaxRank
  /// dimensions. Ignores bytes after the last row, because a writer may be adding a row.
  explicit NpyReader(std::string path);

  const std::string& path() const { return path_; }
  int64_t rows() const { return rows_; }
  const Shape& row_shape() const { return row_shape_; }
  /// Reads row `row` of rows() as f32 or f64; rounds f64 to f32, and widens f32 to f64.
  template <class T>
  void read(int64_t row, T* into);

 private:
  std::string path_;
  RandomAccessFile in_;
  DType dtype_ = DType::f32;
  int64_t rows_ = 0;
  Shape row_shape_;
  int64_t begin_ = 0;             // offset of the data in the file
  std::vector<std::byte> other_;  // buffer for a row of another type
};

/// Adds rows to a file, which is valid at any time: its header counts a row after it was written.
class NpyWriter {
 public:
  /// Continues the file, or creates one without rows. Throws Error with the path unless the file is
  /// one that an NpyWriter of this shape and dtype wrote.
  NpyWriter(std::string path, const Shape& row_shape, DType dtype = DType::f32);

  int64_t rows() const { return rows_; }
  /// Appends a row. Throws Error if the file's dtype is another.
  void append(const float* row) { append(row, DType::f32); }
  void append(const double* row) { append(row, DType::f64); }
  /// Keeps the first `rows` rows and removes the others.
  void keep(int64_t rows);

 private:
  void append(const void* row, DType dtype);
  void count(int64_t rows);

  std::string path_;
  Shape row_shape_;
  DType dtype_;
  int64_t rows_ = 0;
  std::optional<OutputFile> file_;  // always set
};

/// Writes a host tensor in its own dtype. Throws Error for bf16, which NumPy does not have.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace wisp
