// Tests of errors for unusable data: missing, damaged, too little, or with other words.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "apps/interchange/exchange.h"
#include "core/io/checkpoint.h"
#include "data/images/image_source.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_cifar.h"
#include "tests/support/random_images.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

std::string load_error(const Overrides& overrides) {
  return error_of([&] { Prepared(tiny_config(overrides)).load(); });
}

/// Images, of which a class may have a name of any bytes.
class NamedImages final : public ImageSource {
 public:
  explicit NamedImages(Config& config) : ImageSource(config) {
    config.bind("data.first_name", name_, "name of the first class, of which # is the byte 0xe9");
    std::ranges::replace(name_, '#', '\xe9');
  }

 private:
  Shape sample() const override { return {8, 8, 1}; }
  Normalization normalization() const override { return random_normalization(1); }
  int classes() const override { return 10; }
  std::vector<std::string> names() const override { return {"tea", name_}; }
  ImageSet load(Split) const override { return random_images({40, 8, 8, 1}); }

  std::string name_ = "coffee";
};

const DataRegistration named_images("test_named", "test: classes of any name",
                                    make_source<NamedImages>);

TEST(BadData, ClassesWhoseNamesAreNoUtf8) {
  const TempDir dir;
  const auto error = [&](const std::string& name) {
    return error_of([&] {
      tiny_train(dir / "run", {"data.name=test_named", "data.first_name=" + name,
                               "train.max_steps=1", "train.batch=8"});
    });
  };
  EXPECT_EQ(error("caf#"), "the name of a class, \"caf\\xe9\", is no UTF-8");
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
  EXPECT_EQ(error("caf\xc3\xa9"), "no error");
}

TEST(BadData, AFolderOfAClassWhoseNameIsNoUtf8) {
  const TempDir dir;
  for (const char* path : {"photos/tea/a.jpg", "photos/caf\xe9/b.jpg"}) dir.write(path, "");
  EXPECT_EQ(error_of([&] {
              tiny_train(dir / "run", {"data.name=photos", "data.path=" + (dir / "photos")});
            }),
            dir / "photos" +
                ": the name of the class folder \"caf\\xe9\" is no UTF-8; rename the folder");
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

TEST(BadData, MoreWorkersThanSamples) {
  EXPECT_EQ(load_error({"workers=200", "train.batch=200"}),
            "synthetic train: 128 samples for 200 workers, expected at least one each");
}

TEST(BadData, TooFewSamplesForAStep) {
  const std::string error = load_error({"train.batch=256"});
  EXPECT_EQ(error, "synthetic train: 128 samples, expected at least the 256 of one step");
  const std::string parts =
      load_error({"train.batch=64", "train.accumulate=4", "workers=2", "data.train_count=48"});
  EXPECT_EQ(parts, "synthetic train: 48 samples, expected at least the 64 of one step");
}

TEST(BadData, ValidationOfFewerSamplesThanWorkers) {
  EXPECT_EQ(load_error({"workers=4", "data.validation=3"}),
            "synthetic train, held out: 3 samples for 4 workers, expected at least one each");
  EXPECT_EQ(load_error({"workers=4", "data.validation=4"}), "no error");
}

TEST(BadData, ValidationThatLeavesNoStep) {
  EXPECT_EQ(load_error({"data.validation=97"}),
            "command line: data.validation is 97: synthetic train: 31 samples, expected at least "
            "the 32 of one step");
  for (const char* count : {"128", "1000000"}) {
    EXPECT_EQ(load_error({concat("data.validation=", count)}),
              concat("synthetic train: data.validation is ", count,
                     " of 128 training samples, expected fewer"));
  }
  EXPECT_EQ(load_error({"data.validation=96"}), "no error");
}

std::string cifar_error(const std::string& path) {
  return error_of([&] {
    Prepared(Config::from_text(
                 "model.name = \"mlp\"\n[data]\nname = \"cifar10\"\npath = \"" + path + "\"\n",
                 "cifar.toml"))
        .load();
  });
}

TEST(BadData, MissingDirectorySaysHowToGetTheData) {
  const std::string error = cifar_error("/nonexistent/cifar");
  EXPECT_NE(error.find("/nonexistent/cifar"), std::string::npos) << error;
  EXPECT_NE(error.find("scripts/get_cifar10.sh"), std::string::npos) << error;
}

TEST(BadData, FileOfAnotherSizeIsNamed) {
  const TempDir dir;  // the files of write_fake_cifar are all too short for the real data set
  write_fake_cifar(dir, 2);
  const std::string error = cifar_error(dir.path());
  EXPECT_NE(error.find("data_batch_1.bin has 6146 bytes, expected 30730000"), std::string::npos)
      << error;
  std::filesystem::resize_file(dir / "data_batch_1.bin", 30'730'001);
  const std::string longer = cifar_error(dir.path());
  EXPECT_NE(longer.find("data_batch_1.bin has 30730001 bytes"), std::string::npos) << longer;
}

TEST(BadData, LabelAboveNineIsNamed) {
  const TempDir dir;
  write_fake_cifar(dir, 2);
  std::filesystem::resize_file(dir / "data_batch_1.bin", 30'730'000);  // zeros: black, class 0
  std::string bytes = read_text(dir / "data_batch_1.bin");
  bytes[3073 * 7] = 10;
  dir.write("data_batch_1.bin", bytes);
  const std::string error = cifar_error(dir.path());
  EXPECT_NE(error.find("label 10 in record 7 of"), std::string::npos) << error;
  EXPECT_NE(error.find("expected 0 to 9"), std::string::npos) << error;
}

std::string text_error(const std::string& text, const Overrides& overrides = {}) {
  const TempDir dir;
  const std::string path = dir.write("text", text);
  return error_of([&] { Prepared(tiny_text_config(path, overrides)).load(); });
}

TEST(BadText, NeedsATokenForEachColumnAndWhatFollows) {
  EXPECT_EQ(text_error(tiny_lines(20), {"train.batch=100"}),
            "text train: 81 tokens for 100 columns (train.batch), expected at least 101");
  EXPECT_EQ(text_error(tiny_lines(20)),
            "text test: 4 tokens for 4 columns (train.eval_batch; 0: train.batch), expected at "
            "least 5");
  EXPECT_EQ(text_error(tiny_lines(40)), "no error");
}

TEST(BadText, AWorkerNeedsAColumn) {
  EXPECT_EQ(text_error(tiny_lines(40), {"workers=8"}),
            "text.toml:5: train.batch is 4, which 8 workers x 1 micro-batches cannot share "
            "equally");
}

/// A run's weights fit only its own words, in their order.
class AnotherVocabulary : public testing::Test {
 protected:
  AnotherVocabulary() {
    tiny_text_train(dir_ / "run", dir_.write("text", tiny_lines(100)), {"train.max_steps=1"});
    std::string other = tiny_lines(100);
    for (size_t at; (at = other.find("one")) != std::string::npos;) other.replace(at, 3, "uno");
    renamed_ = dir_.write("renamed", other);
    larger_ = dir_.write("larger", other + "more words\n" + tiny_lines(90));
  }
  std::string evaluated(const std::string& text) const {
    return error_of([&] { evaluate_run(dir_ / "run", Overrides{"data.path=" + text}); });
  }
  std::string resumed(const std::string& text) const {
    return error_of([&] {
      train(tiny_text_config(text), {dir_ / "run", RunDirectory::Open::resume, true});
    });
  }

  TempDir dir_;
  std::string renamed_, larger_;
};

TEST_F(AnotherVocabulary, IsNamedBesideTheRunsOwn) {
  const std::string names =
                        concat("class 3 was 'one' when ", dir_ / "run", " was trained, but is '"),
                    sizes = concat(dir_ / "run", " was trained on 9 classes, this data has ");
  EXPECT_TRUE(evaluated(renamed_).starts_with(names)) << evaluated(renamed_);
  EXPECT_TRUE(resumed(renamed_).starts_with(names)) << resumed(renamed_);
  EXPECT_TRUE(evaluated(larger_).starts_with(sizes)) << evaluated(larger_);
  EXPECT_TRUE(resumed(larger_).starts_with(sizes)) << resumed(larger_);
  EXPECT_EQ(evaluated(dir_ / "text"), "no error");
  EXPECT_EQ(resumed(dir_ / "text"), "no error");
}

TEST_F(AnotherVocabulary, IsToldByAFileOfWeights) {
  const std::string file = dir_ / "a.safetensors";
  export_run(dir_ / "run", file, {});
  const auto imported = [&](const std::string& text) {
    return error_of([&] {
      import_run(tiny_text_config(text), file, dir_ / "own", RunDirectory::Open::overwrite);
    });
  };
  const auto begun = [&](const std::string& text, const Overrides& more = {}) {
    const Overrides one_step{"model.init=" + file, "train.max_steps=1"};
    return error_of([&] {
      train(tiny_text_config(text, one_step + more),
            {dir_ / "own", RunDirectory::Open::overwrite, true});
    });
  };
  const std::string refusal = concat(
      file,
      " was trained on other classes or words than this data's 9, or on the same in another order; "
      "to train from its other layers, set it as model.init with model.classes = 10, and the "
      "layers of classes or words start from random weights");
  EXPECT_EQ(imported(renamed_), refusal);
  EXPECT_EQ(begun(renamed_), refusal);
  EXPECT_EQ(begun(renamed_, {"model.classes=10"}), "no error");
  EXPECT_EQ(imported(dir_ / "text"), "no error");
  EXPECT_EQ(begun(dir_ / "text"), "no error");
  {
    const CheckpointReader own(file);
    CheckpointWriter others;  // weights as another program writes them
    for (const std::string& name : own.names()) {
      const Shape shape{std::span(own.entry(name).extents)};
      const Tensor tensor(shape, DType::f32);
      own.read(name, tensor);
      others.add(name, tensor);
    }
    others.write(file);
  }
  EXPECT_EQ(imported(renamed_), "no error") << "the file does not say what its words are";
}

}  // namespace
}  // namespace wisp
