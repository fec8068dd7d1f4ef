#include "data/npy.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/number.h"

namespace wisp {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kWritten = 256;      // bytes of a written header, enough for any shape
constexpr int64_t kMaxHeader = 65536;  // most bytes of a header that is read

/// The content of a header: a dictionary as Python prints it.
struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

/// A parser of Header from text. Throws Error with the path if the text does not follow the format.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    expect("{");
    while (!take("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr" && header.descr.empty()) {
        header.descr = quoted();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = extents();
      } else {
        fail(concat("key '", key, "'"));
      }
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    skip_spaces();
    if (!text_.empty()) fail("something behind the dictionary");
    if (header.descr.empty() || !header.fortran_order || !header.shape)
      fail("no descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw Error(concat(path_, ": its header has ", found,
                       ", expected {'descr': …, 'fortran_order': …, 'shape': (…)}"));
  }
  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size()));
  }
  bool take(std::string_view wanted) {
    skip_spaces();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  void expect(std::string_view wanted) {
    if (!take(wanted)) fail(concat("no ", wanted, " where one belongs"));
  }
  std::string quoted() {
    const bool single = take("'");
    if (!single) expect("\"");
    const size_t end = text_.find(single ? '\'' : '"');
    if (end == text_.npos) fail("a string without end");
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    if (take("True")) return true;
    if (!take("False")) fail("no True or False");
    return false;
  }
  std::vector<int64_t> extents() {
    std::vector<int64_t> values;
    expect("(");
    while (!take(")")) {
      values.push_back(number());
      if (!take(",")) {
        expect(")");
        break;
      }
    }
    return values;
  }
  int64_t number() {
    skip_spaces();
    const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
    constexpr size_t kMostDigits = 18;  // digits that always fit an int64
    if (digits == 0 || digits > kMostDigits) fail("no extent in its shape");
    const int64_t value = std::stoll(std::string(text_.substr(0, digits)));
    text_.remove_prefix(digits);
    if (text_.starts_with('L')) text_.remove_prefix(1);  // suffix of a long in Python 2
    return value;
  }

  const std::string& path_;
  std::string_view text_;
};

std::string header_text(std::string_view descr, std::string_view shape) {
  std::string text =
      concat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kPrefix = 10;  // magic, version, length
  text.resize(kWritten - kPrefix - 1, ' ');
  const auto length = static_cast<uint16_t>(text.size() + 1);
  return concat(kMagic, '\1', '\0', static_cast<char>(length & 0xff),
                static_cast<char>(length >> 8), text, '\n');
}

/// The extents as "3, 4, ".
std::string extents_text(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape) text += concat(extent, ", ");
  return text;
}

/// NumPy's name of a type: the order of its bytes, its kind, and their number.
std::string descr_of(DType dtype) {
  WISP_CHECK(dtype != DType::bf16, "write_npy: no NumPy type for ", name_of(dtype));
  return concat(size_of(dtype) == 1 ? '|' : '<', name_of(dtype)[0], size_of(dtype));
}

std::string rows_header(DType dtype, const Shape& row_shape, int64_t rows) {
  return header_text(descr_of(dtype), concat(rows, ", ", extents_text(row_shape)));
}

}  // namespace

NpyReader::NpyReader(std::string path) : path_(std::move(path)), in_(path_) {
  const int64_t bytes = in_.bytes();
  const auto take = [&](int64_t count) {
    WISP_CHECK(begin_ + count <= bytes, path_, ": ends within its header");
    std::string text(static_cast<size_t>(count), '\0');
    in_.read(text.data(), count, begin_);
    begin_ += count;
    return text;
  };
  const std::string prefix = take(8);
  WISP_CHECK(prefix.starts_with(kMagic), path_, ": is no .npy file");
  const int version = static_cast<unsigned char>(prefix[6]);
  WISP_CHECK((version == 1 || version == 2) && prefix[7] == 0, path_,
             ": is a .npy file of version ", version, ".", static_cast<int>(prefix[7]),
             ", expected 1.0 or 2.0");
  const std::string digits = take(version == 1 ? 2 : 4);
  const auto length = static_cast<int64_t>(unsigned_in(digits, std::endian::little));
  WISP_CHECK(length <= kMaxHeader, path_, ": has a header of ", length, " bytes, expected at most ",
             kMaxHeader);
  const std::string text = take(length);
  const Header header = HeaderParser(path_, text).parse();

  WISP_CHECK(header.descr == "<f4" || header.descr == "<f8", path_, ": holds '", header.descr,
             "', expected '<f4' or '<f8' (little-endian floats)");
  dtype_ = header.descr == "<f4" ? DType::f32 : DType::f64;
  const std::vector<int64_t>& shape = *header.shape;
  WISP_CHECK(!shape.empty() && static_cast<int>(shape.size()) <= Shape::kMaxRank + 1, path_,
             ": has ", shape.size(), " dimensions, expected rows and at most ", Shape::kMaxRank,
             " more");
  WISP_CHECK(!*header.fortran_order || shape.size() == 1, path_,
             ": is in Fortran order, expected C order");
  int64_t row_bytes = size_of(dtype_);
  for (size_t i = 1; i < shape.size(); ++i) {
    WISP_CHECK(0 < shape[i] && shape[i] <= std::numeric_limits<int64_t>::max() / row_bytes, path_,
               ": has a dimension of ", shape[i], " elements");
    row_bytes *= shape[i];
  }
  rows_ = shape[0];
  WISP_CHECK(rows_ > 0 || row_bytes <= bytes, path_, ": holds no rows, and a row of its shape has ",
             row_bytes, " bytes, more than the file");
  WISP_CHECK(rows_ <= (bytes - begin_) / row_bytes, path_, ": holds ", bytes - begin_,
             " bytes of data, fewer than the ", rows_, " rows of ", row_bytes,
             " bytes that its header promises");
  row_shape_ = Shape(std::span(shape).subspan(1));
}

template <class T>
void NpyReader::read(int64_t row, T* into) {
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  const int64_t numel = row_shape_.numel(), bytes = numel * size_of(dtype_);
  const bool other = dtype_ != dtype_of<T>::value;
  if (other) other_.resize(static_cast<size_t>(bytes));
  void* target = other ? static_cast<void*>(other_.data()) : into;
  WISP_CHECK(0 <= row && row < rows_, path_, ": row ", row, " of ", rows_, " cannot be read");
  in_.read(target, bytes, begin_ + row * bytes);
  const auto* values = static_cast<const Other*>(target);
  if (other)
    std::transform(values, values + numel, into, [](Other x) { return static_cast<T>(x); });
}

template void NpyReader::read(int64_t row, float* into);
template void NpyReader::read(int64_t row, double* into);

NpyWriter::NpyWriter(std::string path, const Shape& row_shape, DType dtype)
    : path_(std::move(path)), row_shape_(row_shape), dtype_(dtype) {
  std::string begin;
  if (std::filesystem::exists(path_)) {
    begin = naming(path_, [&] { return read_head(path_, kWritten); });
    const bool empty = begin == rows_header(dtype, row_shape, 0);
    rows_ = empty ? 0 : NpyReader(path_).rows();
    WISP_CHECK(begin == rows_header(dtype, row_shape, rows_), path_, ": rows of shape ", row_shape,
               " cannot be appended to this file, which another program wrote or which has another "
               "shape or type");
  }
  file_.emplace(path_, OutputFile::Mode::keep);
  if (begin.empty()) count(0);
}

void NpyWriter::append(const void* row, DType dtype) {
  WISP_CHECK(dtype == dtype_, path_, ": a row of ", name_of(dtype), " for a file of ",
             name_of(dtype_));
  const int64_t bytes = row_shape_.numel() * size_of(dtype_);
  file_->write_at(kWritten + rows_ * bytes,
                  {static_cast<const char*>(row), static_cast<size_t>(bytes)});
  count(rows_ + 1);
}

void NpyWriter::keep(int64_t rows) {
  if (rows >= rows_) return;
  count(rows);
  const int64_t end = kWritten + rows * row_shape_.numel() * size_of(dtype_);
  WISP_CHECK(ftruncate(file_->descriptor(), end) == 0, path_,
             ": cannot be cut: ", std::strerror(errno));
}

void NpyWriter::count(int64_t rows) {
  file_->write_at(0, rows_header(dtype_, row_shape_, rows));
  rows_ = rows;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  WholeFile file(path);
  file.write(header_text(descr_of(tensor.dtype()), extents_text(tensor.shape())));
  file.write({reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes())});
  file.finish();
}

}  // namespace wisp
