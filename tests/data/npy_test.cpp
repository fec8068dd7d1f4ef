#include "data/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// A file as NumPy writes it: version 1.0, the header padded to 64 bytes.
std::string file_of(const std::string& dictionary, const std::string& data) {
  std::string text = dictionary;
  text.resize((10 + text.size() + 64) / 64 * 64 - 11, ' ');
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(text.size() + 1);
  file += '\0';
  return file + text + '\n' + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> row_of(NpyReader& reader, int64_t row) {
  std::vector<float> values(static_cast<size_t>(reader.row_shape().numel()));
  reader.read(row, values.data());
  return values;
}

std::vector<float> rows_of(const std::string& path) {
  NpyReader reader(path);
  std::vector<float> all;
  for (int64_t row = 0; row < reader.rows(); ++row) {
    const std::vector<float> values = row_of(reader, row);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

constexpr const char* kF4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

TEST(NpyReader, ReadsWhatNumPyWrites) {
  const TempDir dir;
  const std::vector<float> values = {1, 2, 3, -4.5f, 5, 6e30f};
  NpyReader reader(dir.write("a.npy", file_of(kF4, bytes_of(values))));
  EXPECT_EQ(reader.rows(), 2);
  EXPECT_EQ(reader.row_shape(), Shape({3}));
  EXPECT_EQ(row_of(reader, 1), std::vector<float>({-4.5f, 5, 6e30f}));
  EXPECT_EQ(row_of(reader, 0), std::vector<float>({1, 2, 3}));
}

TEST(NpyReader, RoundsDoubles) {
  const TempDir dir;
  const std::string file =
      file_of("{'shape':(2,),'fortran_order':True,\"descr\":\"<f8\"}", bytes_of<double>({0.1, -3}));
  EXPECT_EQ(rows_of(dir.write("a.npy", file)), std::vector<float>({0.1f, -3.0f}))
      << "a row of a one-dimensional array is one number, and has no order";
}

TEST(NpyReader, ReadsExtentsAsPythonTwoWroteThem) {
  const TempDir dir;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  NpyReader reader(dir.write(
      "a.npy",
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", bytes_of(values))));
  EXPECT_EQ(reader.rows(), 2);
  EXPECT_EQ(reader.row_shape(), Shape({3}));
}

TEST(NpyReader, ReadsVersionTwo) {
  const TempDir dir;
  std::string file = file_of(kF4, bytes_of(std::vector<float>(6, 2.0f)));
  file[6] = 2;
  file.insert(10, 2, '\0');
  EXPECT_EQ(rows_of(dir.write("a.npy", file)), std::vector<float>(6, 2.0f));
}

TEST(NpyReader, SaysWhatIsWrongWithAFile) {
  const TempDir dir;
  const std::string data = bytes_of(std::vector<float>(6));
  const auto error = [&](const std::string& file) {
    const std::string path = dir.write("a.npy", file);
    const std::string text = error_of([&] { NpyReader reader(path); });
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  const auto with = [&](const std::string& dictionary) { return file_of(dictionary, data); };
  EXPECT_EQ(error(""), "ends within its header");
  EXPECT_EQ(error("PK\3\4 no array"), "is no .npy file");
  EXPECT_EQ(error(with(kF4).substr(0, 40)), "ends within its header");
  std::string version = with(kF4);
  version[6] = 3;
  EXPECT_EQ(error(version), "is a .npy file of version 3.0, expected 1.0 or 2.0");
  EXPECT_EQ(error(with(kF4).substr(0, with(kF4).size() - 1)),
            "holds 23 bytes of data, fewer than the 2 rows of 12 bytes that its header promises");
  EXPECT_EQ(error(with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }")),
            "holds '>f4', expected '<f4' or '<f8' (little-endian floats)");
  EXPECT_EQ(error(with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }")),
            "is in Fortran order, expected C order");
  EXPECT_EQ(error(with("{'descr': '<f4', 'fortran_order': False, 'shape': (), }")),
            "has 0 dimensions, expected rows and at most 6 more");
  EXPECT_EQ(error(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }")),
            "has a dimension of 0 elements");
  EXPECT_NE(error(with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 999999999999999999, "
                       "999999999999999999), }")),
            "");
  for (const char* dictionary :
       {"{}", "{'descr': '<f4', 'shape': (2, 3)}", "{'descr': '<f4', 'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': no, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} and more", "{'descr: 3",
        "{'descr': '<f4', 'order': 'C'}"})
    EXPECT_NE(error(with(dictionary)).find("expected {'descr': …, 'fortran_order'"),
              std::string::npos)
        << dictionary;
  EXPECT_EQ(error_of([&] { NpyReader reader(dir.path()); }),
            dir.path() + ": it is no file, but a directory");
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { NpyReader reader(dir / "pipe"); }),
            dir / "pipe: it is no file, but a pipe");
  EXPECT_EQ(error_of([&] { NpyWriter writer(dir / "pipe", {2}); }),
            dir / "pipe: it is no file, but a pipe");
}

TEST(NpyReader, RefusesARowThatIsLargerThanTheFile) {
  const TempDir dir;
  const auto refusal = [&](const std::string& shape, const std::string& data = "") {
    const std::string path = dir.write(
        "a.npy",
        file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }", data));
    return error_of([&] { NpyReader reader(path); });
  };
  const std::string none = dir / "a.npy: holds no rows, and a row of its shape has ";
  EXPECT_EQ(refusal("0, 200000000"), none + "800000000 bytes, more than the file");
  EXPECT_EQ(refusal("0, 33"), none + "132 bytes, more than the file");
  EXPECT_EQ(refusal("0, 1000, 1000, 1000"), none + "4000000000 bytes, more than the file");
  EXPECT_EQ(refusal("0, 999999999999999999"),
            none + "3999999999999999996 bytes, more than the file");
  EXPECT_NE(refusal("0, 999999999999999999, 3"), "no error");
  EXPECT_NE(refusal("1, 2" + std::string(30, ' ') + ", 3, 4, 5, 6, 7, 8"), "no error");
  EXPECT_EQ(refusal("0, 32"), "no error") << "a recording before its first row";
  EXPECT_EQ(refusal("0,"), "no error");
  EXPECT_EQ(refusal("1, 3", "012345678901 and more"), "no error") << "a row that is being added";
}

TEST(NpyReader, RefusesTypesThatAreNoFloats) {
  const TempDir dir;
  for (const char* descr : {"'|O'", "'>f8'", "'<f2'", "'<i4'", "'|b1'", "'<U8'", "'|V8'", "'<c8'",
                            "[('a', '<f4'), ('b', '<f4')]", "'<f4', 'descr': '<f4'", "None"}) {
    const std::string path = dir.write(
        "a.npy",
        file_of(concat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (2, 3), }"),
                std::string(48, '\0')));
    EXPECT_EQ(error_of([&] { NpyReader reader(path); }).find(path + ": "), 0u) << descr;
  }
}

TEST(NpyWriter, GoesOnWithAFileWithoutRows) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  const std::vector<float> row(100, 2.0f);  // larger than the header
  { NpyWriter writer(path, {100}); }
  NpyWriter(path, {100}).append(row.data());
  EXPECT_EQ(rows_of(path), row);
}

TEST(NpyWriter, AddsRowsToAFileThatIsWholeAtAnyTime) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  const std::vector<float> first = {1, 2, 3, 4}, second = {5, 6, 7, 8};
  {
    NpyWriter writer(path, {2, 2});
    EXPECT_EQ(NpyReader(path).rows(), 0);
    writer.append(first.data());
    EXPECT_EQ(rows_of(path), first);
  }
  NpyWriter writer(path, {2, 2});
  EXPECT_EQ(writer.rows(), 1);
  writer.append(second.data());
  EXPECT_EQ(NpyReader(path).row_shape(), Shape({2, 2}));
  EXPECT_EQ(rows_of(path), std::vector<float>({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(NpyWriter, WritesDoublesAsTheyAre) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  const double row[] = {0.1, 1e300};
  {
    NpyWriter writer(path, {2}, DType::f64);
    writer.append(row);
    writer.append(row);
    writer.keep(1);
  }
  double read[2] = {};
  NpyReader(path).read(0, read);
  EXPECT_EQ(NpyReader(path).rows(), 1);
  EXPECT_EQ(read[0], row[0]);
  EXPECT_EQ(read[1], row[1]);
  EXPECT_NE(error_of([&] { NpyWriter(path, {2}); }).find("cannot be appended to this file"),
            std::string::npos);
  const float narrow[] = {1, 2};
  EXPECT_NE(error_of([&] {
              NpyWriter(path, {2}, DType::f64).append(narrow);
            }).find("a row of f32 for a file of f64"),
            std::string::npos);
}

TEST(NpyWriter, GoesOnAfterAKillInTheMiddleOfARow) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  const std::vector<float> row = {1, 2};
  NpyWriter(path, {2}).append(row.data());
  dir.write("a.npy", read_text(path) + "half");
  EXPECT_EQ(rows_of(path), row);
  NpyWriter(path, {2}).append(row.data());
  EXPECT_EQ(rows_of(path), std::vector<float>({1, 2, 1, 2}));
}

TEST(NpyWriter, KeepsTheFirstRows) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  NpyWriter writer(path, {});
  for (const float value : {0.0f, 1.0f, 2.0f, 3.0f, 4.0f}) writer.append(&value);
  const auto five = std::filesystem::file_size(path);
  writer.keep(7);
  EXPECT_EQ(writer.rows(), 5);
  writer.keep(2);
  EXPECT_EQ(std::filesystem::file_size(path), five - 3 * sizeof(float));
  const float next = 9;
  writer.append(&next);
  EXPECT_EQ(rows_of(path), std::vector<float>({0, 1, 9}));
}

TEST(NpyWriter, RefusesAFileOfOthers) {
  const TempDir dir;
  const std::string path = dir / "a.npy";
  { const NpyWriter begun(path, {2, 3}); }
  EXPECT_NE(error_of([&] {
              NpyWriter(path, {3, 2});
            }).find("cannot be appended to this file"),
            std::string::npos);
  const std::string other = dir.write("b.npy", file_of(kF4, bytes_of(std::vector<float>(6))));
  EXPECT_NE(error_of([&] { NpyWriter(other, {3}); }).find("cannot be appended to this file"),
            std::string::npos);
}

TEST(WriteNpy, WritesATensorInItsOwnType) {
  const TempDir dir;
  Tensor tensor({2, 3}, DType::f32);
  tensor.data<float>()[5] = 7.0f;
  write_npy(dir / "a.npy", tensor);
  EXPECT_EQ(rows_of(dir / "a.npy"), std::vector<float>({0, 0, 0, 0, 0, 7}));
  write_npy(dir / "b.npy", Tensor({4}, DType::i64));
  EXPECT_NE(read_text(dir / "b.npy").find("'descr': '<i8'"), std::string::npos);
}

}  // namespace
}  // namespace wisp
