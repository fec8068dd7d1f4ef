#include "data/images/cifar10.h"

#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/images/image_source.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32;
constexpr int64_t kChannels = 3;
constexpr int64_t kPixels = kSide * kSide;
constexpr int64_t kRecordBytes = 1 + kPixels * kChannels;
constexpr int kClasses = 10;
constexpr const char* kFolder = "cifar-10-batches-bin";
constexpr const char* kAdvice =
    "; scripts/get_cifar10.sh fetches the data set and prints the folder to give as data.path";

std::vector<std::string> files_of(Split split) {
  if (split == Split::test) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin"};
}

void read_file(const fs::path& path, int64_t records, uint8_t* images, int32_t* labels) {
  std::error_code ignored;  // opening the file reports it
  WISP_CHECK(fs::exists(path, ignored), "cifar10: no file ", path.string(), kAdvice);
  const RandomAccessFile file = naming("cifar10", [&] { return RandomAccessFile(path.string()); });
  const int64_t bytes = file.bytes();
  WISP_CHECK(bytes == records * kRecordBytes, "cifar10: ", path.string(), " has ", bytes,
             " bytes, expected ", records * kRecordBytes, " (", records, " records of ",
             kRecordBytes, ")");
  std::array<uint8_t, kRecordBytes> record;
  for (int64_t i = 0; i < records; ++i) {
    file.read(record.data(), kRecordBytes, i * kRecordBytes);
    WISP_CHECK(record[0] < kClasses, "cifar10: label ", int{record[0]}, " in record ", i, " of ",
               path.string(), ", expected 0 to ", kClasses - 1);
    labels[i] = record[0];
    const uint8_t* plane = record.data() + 1;
    uint8_t* pixels = images + i * kPixels * kChannels;
    for (int64_t c = 0; c < kChannels; ++c, plane += kPixels)
      for (int64_t p = 0; p < kPixels; ++p) pixels[p * kChannels + c] = plane[p];
  }
}

class Cifar10 final : public ImageSource {
 public:
  explicit Cifar10(Config& config) : ImageSource(config) {
    config.bind("data.path", path_, "folder with the files, or with cifar-10-batches-bin in it");
  }

 private:
  Shape sample() const override { return {kSide, kSide, kChannels}; }
  Normalization normalization() const override {
    return {{125.3, 123.0, 113.9}, {63.0, 62.1, 66.7}};
  }
  int classes() const override { return kClasses; }
  std::vector<std::string> names() const override {
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  }
  ImageSet load(Split split) const override { return read_cifar10(find_cifar10(path_), split); }

  std::string path_ = "data-cache";
};

const DataRegistration registration("cifar10",
                                    "CIFAR-10, 60,000 photos in 10 classes (Krizhevsky 2009)",
                                    make_source<Cifar10>);

}  // namespace

std::string find_cifar10(const std::string& path) {
  WISP_CHECK(fs::is_directory(path), "cifar10: no directory '", path, "' (data.path)", kAdvice);
  const fs::path inside = fs::path(path) / kFolder;
  return fs::is_directory(inside) ? inside.string() : path;
}

ImageSet read_cifar10(const std::string& folder, Split split, int64_t records_per_file) {
  const std::vector<std::string> files = files_of(split);
  const int64_t count = std::ssize(files) * records_per_file;
  ImageSet set{.name = concat("cifar10 ", name_of(split)),
               .images = Tensor({count, kSide, kSide, kChannels}, DType::u8),
               .labels = Tensor({count}, DType::i32),
               .classes = kClasses};
  int64_t first = 0;
  for (const std::string& file : files) {
    read_file(fs::path(folder) / file, records_per_file,
              set.images.data<uint8_t>() + first * kPixels * kChannels,
              set.labels.data<int32_t>() + first);
    first += records_per_file;
  }
  set.check();
  return set;
}

}  // namespace wisp
