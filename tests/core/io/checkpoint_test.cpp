#include "core/io/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <future>

#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/sealed_files.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

template <class T>
Tensor counted(Shape shape, DType dtype, int first) {
  Tensor tensor(shape, dtype);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.data<T>()[i] = static_cast<T>(first + static_cast<int>(i));
  return tensor;
}

bool same(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

struct Sample {
  Tensor weight = counted<float>({2, 3}, DType::f32, 1);
  Tensor step = counted<int64_t>({}, DType::i64, 7);
  Tensor mask = counted<uint8_t>({3}, DType::u8, 0);

  void write(const std::string& path) const {
    CheckpointWriter writer;
    writer.add("mask", mask);
    writer.add("weight", weight);
    writer.add("step", step);
    writer.metadata("seed", "1");
    writer.write(path);
  }
};

/// All contents of the file as text, or "error".
std::string content(const std::string& path) {
  std::string text;
  const auto read = [&](const CheckpointReader& reader, const std::string& name,
                        const Tensor& like) {
    const Tensor into(like.shape(), like.dtype());
    reader.read(name, into);
    text.append(reinterpret_cast<const char*>(into.raw()), static_cast<size_t>(into.bytes()));
  };
  const std::string error = error_of([&] {
    const CheckpointReader reader(path);
    const Sample like;
    read(reader, "weight", like.weight);
    read(reader, "step", like.step);
    read(reader, "mask", like.mask);
    text += reader.metadata("seed");
  });
  return error == "no error" ? text : "error";
}

TEST(Checkpoint, ReadsBackWhatWasWritten) {
  const TempDir dir;
  const Sample sample;
  sample.write(dir / "a");
  const CheckpointReader reader(dir / "a");
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"mask", "step", "weight"}));
  EXPECT_TRUE(reader.has("mask"));
  EXPECT_FALSE(reader.has("seed"));
  EXPECT_TRUE(reader.has_metadata("seed"));
  EXPECT_EQ(reader.metadata("seed"), "1");
  Tensor weight({2, 3}, DType::f32), step({}, DType::i64), mask({3}, DType::u8);
  reader.read("weight", weight);
  reader.read("step", step);
  reader.read("mask", mask);
  EXPECT_TRUE(same(weight, sample.weight));
  EXPECT_TRUE(same(step, sample.step));
  EXPECT_TRUE(same(mask, sample.mask));
}

TEST(Checkpoint, EveryDtypeSurvives) {
  const TempDir dir;
  CheckpointWriter writer;
  const DType all[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                       DType::i32, DType::i64, DType::u8,  DType::u32};
  for (const DType dtype : all) {
    const Tensor tensor({5}, dtype);
    std::memset(tensor.raw(), 0x31 + static_cast<int>(dtype), static_cast<size_t>(tensor.bytes()));
    writer.add(name_of(dtype), tensor);
  }
  writer.write(dir / "a");
  const CheckpointReader reader(dir / "a");
  for (const DType dtype : all) {
    const Tensor tensor({5}, dtype);
    reader.read(name_of(dtype), tensor);
    EXPECT_EQ(static_cast<int>(tensor.raw()[tensor.bytes() - 1]), 0x31 + static_cast<int>(dtype));
  }
}

TEST(Checkpoint, FileIsSafetensors) {
  const TempDir dir;
  Sample().write(dir / "a");
  const std::string bytes = read_text(dir / "a");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string header = bytes.substr(8, length);
  EXPECT_EQ(header[0], '{');
  // The widest types come first, so that all tensors are aligned.
  EXPECT_NE(header.find(R"("step":{"data_offsets":[0,8],"dtype":"I64","shape":[]})"),
            std::string::npos);
  EXPECT_NE(header.find(R"("weight":{"data_offsets":[8,32],"dtype":"F32","shape":[2,3]})"),
            std::string::npos);
  EXPECT_NE(header.find(R"("mask":{"data_offsets":[32,35],"dtype":"U8","shape":[3]})"),
            std::string::npos);
  EXPECT_EQ(bytes.size(), 8 + length + 35);
}

TEST(Checkpoint, PiecesMakeTheFileOfTheWhole) {
  const TempDir dir;
  const Sample sample;
  sample.write(dir / "whole");
  CheckpointStream stream(
      dir / "pieces",
      {{"mask", {{3}, DType::u8}}, {"weight", {{2, 3}, DType::f32}}, {"step", {{}, DType::i64}}},
      {{"seed", "1"}});
  stream.append("weight", sample.weight.rows(0, 1));
  stream.append("mask", sample.mask.rows(0, 2));
  stream.append("step", sample.step);
  stream.append("weight", sample.weight.rows(1, 2));
  stream.append("mask", sample.mask.rows(2, 3));
  EXPECT_FALSE(std::filesystem::exists(dir / "pieces")) << "nobody sees a part";
  stream.finish();
  EXPECT_EQ(read_text(dir / "pieces"), read_text(dir / "whole"));
}

TEST(Checkpoint, APipeGetsTheBytesOfTheFile) {
  const TempDir dir;
  Sample().write(dir / "file");
  const std::string pipe = dir / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::future<std::string> read = std::async([&] { return read_text(pipe); });
  Sample().write(pipe);
  EXPECT_EQ(read.get(), read_text(dir / "file"));
}

TEST(Checkpoint, PiecesThatDoNotFitLeaveNoFile) {
  const TempDir dir;
  {
    CheckpointStream stream(dir / "a", {{"x", {{2, 3}, DType::f32}}});
    const Tensor row({1, 3}, DType::f32);
    row.clear();
    stream.append("x", row);
    EXPECT_EQ(error_of([&] { stream.append("y", row); }),
              concat(dir / "a", ": was told of no tensor y"));
    EXPECT_EQ(error_of([&] { stream.append("x", Tensor({3}, DType::f64)); }),
              concat(dir / "a", ": x is F32, a part of it is F64"));
    EXPECT_EQ(error_of([&] { stream.finish(); }), concat(dir / "a", ": x has 12 bytes of 24"));
    stream.append("x", row);
    EXPECT_EQ(error_of([&] { stream.append("x", row); }),
              concat(dir / "a", ": x has room for 24 bytes, but has 24 and gets 12 more"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir / "."));
}

TEST(Checkpoint, BytesDependOnContentAlone) {
  const TempDir dir;
  const Sample sample;
  sample.write(dir / "a");
  CheckpointWriter other_order;
  other_order.metadata("seed", "1");
  other_order.add("step", sample.step);
  other_order.add("weight", sample.weight);
  other_order.add("mask", sample.mask);
  std::filesystem::create_directory(dir / "b");
  other_order.write(dir / "b/elsewhere");
  EXPECT_EQ(read_text(dir / "a"), read_text(dir / "b/elsewhere"));
}

/// A safetensors file with this header and data.
std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(Checkpoint, ReadsAnotherProgramsFileWhereChecksumsAreOptional) {
  const TempDir dir;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string path = dir.write("a", file_of(header, std::string("\0\0\x80?\0\0\0@", 8)));
  const CheckpointReader reader(path, CheckpointReader::Checksums::optional);
  EXPECT_EQ(reader.entry("a").str(), "F32 [2]");
  const Tensor into({2}, DType::f32);
  reader.read("a", into);
  EXPECT_EQ(into.data<float>()[0], 1.0f);
  EXPECT_EQ(into.data<float>()[1], 2.0f);
  EXPECT_EQ(error_of([&] { CheckpointReader required(path); }),
            path + ": there is no checksum in the header");
  EXPECT_EQ(error_of([&] { reader.read("a", Tensor({2}, DType::i32)); }),
            path + ": a is F32 [2], expected I32 [2]");
}

TEST(Checkpoint, ChecksChecksumsThatAreThereThoughOptional) {
  const TempDir dir;
  Sample().write(dir / "a");
  std::string bytes = read_text(dir / "a");
  const std::string good = bytes;
  bytes[bytes.size() - 35] ^= 1;  // the first byte of the data, in `step`
  const CheckpointReader reader(dir.write("b", bytes), CheckpointReader::Checksums::optional);
  EXPECT_NE(error_of([&] { reader.read("step", Tensor({}, DType::i64)); }).find("is damaged"),
            std::string::npos);
  bytes = good;
  bytes[bytes.find("[2,3]") + 1] = '3';
  bytes[bytes.find("[3,3]") + 3] = '2';
  EXPECT_NE(error_of([&] {
              CheckpointReader sealed(dir.write("c", bytes), CheckpointReader::Checksums::optional);
            }).find("the header is damaged: its checksum is"),
            std::string::npos);
}

TEST(Checkpoint, ShortFilesAndLongHeadersAreNamed) {
  const TempDir dir;
  const auto error = [&](const std::string& bytes) {
    return error_of([&] {
      CheckpointReader reader(dir.write("a", bytes), CheckpointReader::Checksums::optional);
    });
  };
  for (size_t bytes = 0; bytes < 8; ++bytes)
    EXPECT_NE(error(std::string(bytes, '\0')).find("ends at byte"), std::string::npos) << bytes;
  EXPECT_EQ(
      error(std::string(8, '\xff')),
      dir /
          "a: the header has 18446744073709551615 bytes, there is room for 0; is it a safetensors "
          "file?");
  EXPECT_NE(error(std::string(8, '\0')).find("the header is damaged"), std::string::npos);
  EXPECT_NE(error_of([&] {
              CheckpointReader reader(dir.path(), CheckpointReader::Checksums::optional);
            }).find("it is no file, but a directory"),
            std::string::npos);
}

/// They could be written, and never read.
TEST(Checkpoint, MoreTensorsThanAReaderTakesAreRefused) {
  const TempDir dir;
  const std::string path = dir.write("x", "old"), name(70'000, 'n');
  std::map<std::string, CheckpointStream::Entry> tensors;
  for (int i = 0; i < 120; ++i) tensors[concat(name, i)] = {{1}, DType::u8};
  EXPECT_NE(error_of([&] {
              CheckpointStream(path, tensors);
            }).find(path + ": 120 tensors have a header of 16"),
            std::string::npos);
  EXPECT_EQ(read_text(path), "old");
}

TEST(Checkpoint, EachTruncationIsFound) {
  const TempDir dir;
  Sample().write(dir / "a");
  const std::string bytes = read_text(dir / "a");
  ASSERT_NE(content(dir / "a"), "error");
  for (size_t length = bytes.size(); length-- > 0;) {
    std::filesystem::resize_file(dir / "a", length);
    ASSERT_EQ(content(dir / "a"), "error") << length;
  }
  dir.write("long", bytes + '\0');
  EXPECT_EQ(content(dir / "long"), "error");
}

TEST(Checkpoint, AFlippedBitIsFoundOrHarmless) {
  const TempDir dir;
  Sample().write(dir / "a");
  const std::string bytes = read_text(dir / "a");
  const std::string whole = content(dir / "a");
  size_t found = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {  // one bit of each byte
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    const std::string read = content(dir.write(std::to_string(i), flipped));
    if (read == "error") {
      ++found;
    } else {
      ASSERT_EQ(read, whole) << "byte " << i;
    }
  }
  EXPECT_GE(found, bytes.size() - 7);  // a padding blank may become another white space
}

TEST(Checkpoint, ErrorsNameFileTensorAndBothValues) {
  const TempDir dir;
  const std::string path = dir / "a";
  Sample().write(path);
  const CheckpointReader reader(path);
  EXPECT_EQ(error_of([&] { reader.read("bias", Tensor({1}, DType::f32)); }),
            path + ": has no tensor bias");
  EXPECT_EQ(error_of([&] {
              reader.read("weight", Tensor({3, 2}, DType::f32));
            }),
            path + ": weight is F32 [2,3], expected F32 [3,2]");
  EXPECT_EQ(error_of([&] {
              reader.read("weight", Tensor({2, 3}, DType::f64));
            }),
            path + ": weight is F32 [2,3], expected F64 [2,3]");
  EXPECT_EQ(error_of([&] { reader.metadata("sead"); }), path + ": has no metadata sead");
  EXPECT_EQ(error_of([&] { CheckpointReader(dir / "none"); }),
            (dir / "none") + ": there is no such file");
  EXPECT_EQ(error_of([&] {
              CheckpointReader reader_of_text(dir.write("t", "not a checkpoint"));
            }).substr(0, (dir / "t").size() + 16),
            (dir / "t") + ": the header has");
}

TEST(Checkpoint, DamagedValuesAreNamed) {
  const TempDir dir;
  Sample().write(dir / "a");
  std::string bytes = read_text(dir / "a");
  bytes[bytes.size() - 35] ^= 1;  // the first byte of the data, in `step`
  const CheckpointReader reader(dir.write("b", bytes));
  EXPECT_EQ(error_of([&] {
              reader.read("step", Tensor({}, DType::i64));
            }).find((dir / "b") + ": step is damaged: its checksum is "),
            0u);
  EXPECT_NO_THROW(reader.read("mask", Tensor({3}, DType::u8)));
}

TEST(Checkpoint, NamesAreUniqueAndTensorsAreThere) {
  CheckpointWriter writer;
  writer.add("a", Tensor({1}, DType::f32));
  EXPECT_EQ(error_of([&] { writer.add("a", Tensor({1}, DType::f32)); }),
            "checkpoint: two tensors are named a");
  EXPECT_EQ(error_of([&] { writer.add("b", Tensor()); }), "checkpoint: b is undefined");
  EXPECT_EQ(error_of([&] { writer.add("__metadata__", Tensor({1}, DType::f32)); }),
            "checkpoint: a tensor cannot be named __metadata__");
  EXPECT_EQ(error_of([&] { writer.metadata("crc32c.a", ""); }),
            "checkpoint: metadata crc32c.a: names that start with crc32c are for checksums");
}

TEST(Checkpoint, AFullDiskLeavesTheOldFile) {
  const TempDir dir;
  Sample().write(dir / "a");
  const std::string before = read_text(dir / "a");
  {
    const FileSizeLimit limit(16);
    EXPECT_EQ(error_of([&] { Sample().write(dir / "a"); }),
              (dir / "a") + ": cannot be written: File too large");
  }
  EXPECT_EQ(read_text(dir / "a"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(Checkpoint, ATensorIsReadWithTheShapeOfTheFile) {
  const TempDir dir;
  Sample().write(dir / "a");
  const CheckpointReader reader(dir / "a");
  const Tensor weight = reader.read("weight", DType::f32);
  EXPECT_EQ(weight.shape(), Shape({2, 3}));
  EXPECT_TRUE(same(weight, Sample().weight));
  EXPECT_EQ(reader.read("step", DType::i64).shape(), Shape());
  EXPECT_EQ(error_of([&] { reader.read("weight", DType::i64); }),
            (dir / "a") + ": weight is F32 [2,3], expected I64");
  EXPECT_EQ(error_of([&] { reader.read("bias", DType::f32); }),
            (dir / "a") + ": has no tensor bias");
}

// The shapes of these tensors ask for more memory than there is, but the file has no byte of them.
TEST(Checkpoint, AShapeWithoutBytesTakesNoMemory) {
  const TempDir dir;
  const int64_t many = int64_t{1} << 57;
  SafetensorsHeader header;
  header.tensors["later"] = {"X9", {many}, 0, 0};
  header.tensors["empty"] = {"F32", {0, many, 16}, 0, 0};
  header.tensors["ranks"] = {"F32", {1, 1, 1, 1, 1, 1, 1, 1}, 0, 4};
  write_sealed(dir, "a", header, "1234");
  const CheckpointReader reader(dir / "a");
  EXPECT_EQ(error_of([&] { reader.read("later", DType::f32); }),
            concat(dir / "a", ": later is X9 [", many, "], expected F32"));
  for (const char* name : {"empty", "ranks"})
    EXPECT_EQ(error_of([&] { reader.read(name, DType::f32); }).find(dir / "a" + ": " + name), 0u);
}

TEST(Checkpoint, APlaceThatCannotBeWrittenIsNamed) {
  const TempDir dir;
  const std::string file = dir.write("file", "");
  EXPECT_EQ(error_of([&] { Sample().write(file + "/a"); }),
            file + "/a: cannot be opened for writing: Not a directory");
}

}  // namespace
}  // namespace wisp
