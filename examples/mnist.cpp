// A data set of your own: MNIST, or another set in its format (Fashion-MNIST). Source of the
// format, IDX: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
#include <sstream>

#include "core/io/input_file.h"
#include "data/images/image_source.h"

namespace wisp::examples {

constexpr int64_t kSide = 28;
constexpr int kClasses = 10;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a file

/// Reads bytes in the IDX format into (samples, item.numel()). The file begins with big-endian
/// words: the type and number of extents, the number of samples, the extents of an item.
Tensor read_idx(const std::string& path, const std::vector<uint32_t>& item) {
  const std::string file = naming(concat("mnist: ", path, " (data.path)"),
                                  [&] { return read_whole_file(path, kMostBytes); });
  std::istringstream in(file);
  const auto word = [&in] {
    uint32_t value = 0;
    for (int byte = 0; byte < 4; ++byte) value = value << 8 | (in.get() & 0xff);
    return value;
  };
  bool fits = word() == 0x801 + item.size();
  const int64_t samples = word();
  int64_t numel = 1;
  for (const uint32_t extent : item) {
    fits = fits && word() == extent;
    numel *= extent;
  }
  WISP_CHECK(in && fits, "mnist: ", path, " does not begin as expected; is it unpacked?");
  const int64_t bytes = std::ssize(file) - in.tellg();
  WISP_CHECK(bytes == samples * numel, "mnist: ", path, " has ", bytes, " bytes for ", samples,
             " samples of ", numel);
  const Tensor result({samples, numel}, DType::u8);
  in.read(reinterpret_cast<char*>(result.raw()), bytes);
  return result;
}

class Mnist final : public ImageSource {
 public:
  explicit Mnist(Config& config) : ImageSource(config) {
    config.bind("data.path", path_, "folder with the four files, unpacked");
  }

 private:
  Shape sample() const override { return {kSide, kSide, 1}; }
  Normalization normalization() const override { return {{33.3}, {78.6}}; }
  int classes() const override { return kClasses; }
  ImageSet load(Split split) const override {
    const std::string stem = path_ + (split == Split::train ? "/train" : "/t10k");
    const Tensor images = read_idx(stem + "-images-idx3-ubyte", {kSide, kSide});
    const Tensor labels = read_idx(stem + "-labels-idx1-ubyte", {});
    const int64_t count = images.shape()[0];
    ImageSet set{.name = concat("mnist ", name_of(split)),
                 .images = images.reshape({count, kSide, kSide, 1}),
                 .labels = Tensor({labels.numel()}, DType::i32),
                 .classes = kClasses};
    std::copy_n(labels.data<uint8_t>(), labels.numel(), set.labels.data<int32_t>());
    set.check();
    return set;
  }

  std::string path_ = "data-cache/mnist";
};

const DataRegistration registration("mnist", "handwritten digits in 10 classes (LeCun et al. 1998)",
                                    make_source<Mnist>);

}  // namespace wisp::examples
