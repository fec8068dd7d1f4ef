#include <gtest/gtest.h>

#include "data/data_source.h"
#include "data/loader.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// The content of an IDX file: big-endian words, then bytes.
std::string idx(const std::vector<int>& words, int64_t bytes) {
  std::string text;
  for (const int word : words)
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(word >> shift & 0xff);
  for (int64_t i = 0; i < bytes; ++i) text += static_cast<char>(i % 10);
  return text;
}

class Mnist : public testing::Test {
 protected:
  Mnist() {
    for (const std::string stem : {"train", "t10k"}) {
      dir_.write(stem + "-images-idx3-ubyte", idx({0x803, 3, 28, 28}, 3 * 784));
      dir_.write(stem + "-labels-idx1-ubyte", idx({0x801, 3}, 3));
    }
  }
  Splits load() const {
    Config config = Config::from_text(
        "data = { name = 'mnist', augment = false, path = '" + dir_.path() + "' }", "t");
    return make_data_source(config)->open(DType::f32);
  }
  std::string error() const {
    return error_of([&] { load(); });
  }

  TempDir dir_;
};

TEST_F(Mnist, ReadsImagesAndLabels) {
  const Splits splits = load();
  Loader loader(*splits.test, {.batch = 3, .training = false});
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.inputs[0].shape(), Shape({3, 28, 28, 1}));
  EXPECT_FLOAT_EQ(batch.inputs[0].data<float>()[785], (785 % 10 - 33.3f) / 78.6f);
  EXPECT_EQ(batch.targets.data<int32_t>()[2], 2);
}

TEST_F(Mnist, RefusesWhatIsNotSuchAFile) {
  dir_.write("train-images-idx3-ubyte", idx({0x803, 3, 28, 28}, 3 * 784 - 1));
  EXPECT_NE(error().find("has 2351 bytes for 3 samples of 784"), std::string::npos) << error();
  dir_.write("train-images-idx3-ubyte", idx({0x803, 3, 32, 32}, 3 * 1024));
  EXPECT_NE(error().find("does not begin as expected"), std::string::npos) << error();
  dir_.write("train-images-idx3-ubyte", "\x1f\x8b");  // packed
  EXPECT_NE(error().find("does not begin as expected"), std::string::npos) << error();
}

TEST_F(Mnist, RefusesAnotherNumberOfLabels) {
  dir_.write("train-labels-idx1-ubyte", idx({0x801, 2}, 2));
  EXPECT_NE(error().find("mnist train: labels are (2)"), std::string::npos) << error();
}

TEST_F(Mnist, NamesTheFileThatIsMissing) {
  std::filesystem::remove(dir_ / "train-labels-idx1-ubyte");
  EXPECT_NE(error().find("train-labels-idx1-ubyte (data.path)"), std::string::npos) << error();
}

}  // namespace
}  // namespace wisp
