#include "apps/inference/predict.h"

#include <gtest/gtest.h>

#include "data/decoding/image_file.h"
#include "data/images/synthetic.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

class Predict : public testing::Test {
 protected:
  Predict() { tiny_train(dir_ / "run", {"train.epochs=2"}); }

  std::vector<Prediction> predictions(const std::vector<std::string>& files, int64_t top = 3) {
    Inference model(dir_ / "run");
    std::vector<Prediction> found;
    predict(model, files, top, [&](const Prediction& prediction) { found.push_back(prediction); });
    return found;
  }

  TempDir dir_;
};

/// For pictures of the model's size, predict gives the logits of an evaluation of these samples.
TEST_F(Predict, APictureOfTheTestSetGetsItsLogits) {
  const ImageSet set = draw_synthetic({.test_count = 40}, Split::test);
  std::vector<std::string> files;
  for (int64_t i = 0; i < 40; ++i) {  // more than one batch of files
    files.push_back(dir_ / concat(i, ".png"));
    write_image(files.back(), set.image(i));
  }
  const std::vector<Prediction> found = predictions(files, 10);
  ASSERT_EQ(found.size(), 40u);
  double correct = 0.0;
  for (int64_t i = 0; i < 40; ++i) {
    const Prediction& prediction = found[static_cast<size_t>(i)];
    EXPECT_EQ(prediction.file, files[static_cast<size_t>(i)]);
    ASSERT_EQ(prediction.classes.size(), 10u) << prediction.error;
    correct += prediction.classes[0].index == set.labels.data<int32_t>()[i];
    double sum = 0.0;
    for (size_t c = 0; c < 10; ++c) {
      sum += prediction.classes[c].probability;
      EXPECT_LE(prediction.classes[c].probability,
                prediction.classes[c > 0 ? c - 1 : 0].probability);
    }
    EXPECT_NEAR(sum, 1.0, 1e-9);
  }
  EXPECT_DOUBLE_EQ(correct / 40, evaluate_run(dir_ / "run", {}).test.metrics[0]);
}

TEST_F(Predict, AFileThatCannotBeReadStopsNoOther) {
  const ImageSet set = draw_synthetic({.test_count = 2}, Split::test);
  const std::vector<std::string> files = {dir_ / "none.png", dir_ / "a.png",
                                          dir_.write("text.png", "no image"), dir_ / "b.png",
                                          dir_ / std::string(300, 'a')};
  write_image(files[1], set.image(0));
  write_image(files[3], set.image(1));
  const std::vector<Prediction> found = predictions(files);
  ASSERT_EQ(found.size(), 5u);
  for (const size_t bad : {0, 2, 4}) {
    EXPECT_NE(found[bad].error.find(files[bad]), std::string::npos) << found[bad].error;
    EXPECT_TRUE(found[bad].classes.empty());
  }
  const std::vector<Prediction> alone = predictions({files[3]});
  ASSERT_EQ(found[3].classes.size(), 3u);
  EXPECT_EQ(found[3].classes[0].index, alone[0].classes[0].index);
  EXPECT_NEAR(found[3].classes[0].probability, alone[0].classes[0].probability, 1e-6);
  EXPECT_FALSE(found[1].classes.empty());
  EXPECT_FALSE(predictions({files[0]})[0].error.empty()) << "nothing but errors";
}

TEST_F(Predict, AModelThatHasDivergedSaysSo) {
  tiny_train(dir_ / "diverged", {"optimizer.lr=1e30", "train.max_steps=2"});
  const std::string file = dir_ / "a.png";
  write_image(file, draw_synthetic({.test_count = 1}, Split::test).image(0));
  Inference model(dir_ / "diverged");
  EXPECT_NE(error_of([&] {
              predict(model, {&file, 1}, 1, [](const Prediction&) {});
            }).find("the model's output is not finite"),
            std::string::npos);
}

TEST_F(Predict, AModelThatReadsNoImagesIsRefused) {
  const std::string facts = read_text(dir_ / "run/facts.json");
  std::string text = facts;
  text.replace(text.find("\"mean\""), 6, "\"else\"");
  dir_.write("run/facts.json", text);
  EXPECT_NE(error_of([&] { predictions({"a.png"}); }).find("how pixels are normalised"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
